// What two processes tell each other in a hot restart. The younger one asks, the older one answers, in this order:
//
//   child                                        parent
//   hello ─────────────────────────────────────▶ (refuses another version, and while it is starting itself)
//   stop-admin ────────────────────────────────▶ closes its admin interface, hands over that socket; its sinks rest
//   sockets, for each address of its listeners ─▶ hands over all sockets that it has there
//   stats, with each flush ────────────────────▶ what it has counted since, and its gauges
//   drain ─────────────────────────────────────▶ accepts no more; its connections drain
//   terminate ─────────────────────────────────▶ ends; tells what it has counted last before that, unasked
//
// A parent whose child goes away before `drain` takes back what it has stopped, and serves as before. Whoever changes what a
// message means raises HOT_RESTART_VERSION in src/base/version.ts.

import type { Address } from '../../base/address.ts';
import type { ParentLoad } from '../../control-plane/index.ts';
import type { StatBatch } from '../../stats/index.ts';

export type Question =
  | { readonly type: 'hello'; readonly version: string; readonly epoch: number }
  /** With the address of the child's own; null where it has none. Answered by `descriptors`. */
  | { readonly type: 'stop-admin'; readonly address: Address | null; readonly token: string }
  /** Answered by `descriptors`, which have been sent to the child's other socket with the token. */
  | { readonly type: 'sockets'; readonly address: Address; readonly token: string }
  /** Answered by any number of `stat-batch`, and `stats-end`. */
  | { readonly type: 'stats' }
  | { readonly type: 'drain' }
  | { readonly type: 'terminate' };

export interface Welcome {
  readonly type: 'welcome';
  readonly version: string;
  readonly generation: number;
  /** Since the first process of the row was started. */
  readonly runMs: number;
  /** Base64; sessions of TLS go on with it. Absent from those that know nothing of it. */
  readonly ticketSecret?: string;
}

export type Answer =
  | Welcome
  | { readonly type: 'refused'; readonly reason: string }
  | { readonly type: 'descriptors'; readonly count: number }
  | { readonly type: 'stat-batch'; readonly batch: StatBatch }
  | { readonly type: 'stats-end'; readonly load: ParentLoad }
  | { readonly type: 'done' }
  /** The question is none that this version knows. */
  | { readonly type: 'unknown' };

/** Numbered by the child; answers have the number of their question, or 0 where nobody has asked. */
export type Numbered<Message> = Message & { readonly id: number };
