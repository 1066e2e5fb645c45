// What an attempt tells of itself where attempts are logged (attempt-log.ts).

import type { ResponseHead } from '../../wasm/http1.ts';
import type { WireBytes } from '../format/wire-bytes.ts';
import type { Trailers } from '../http/trailers.ts';
import type { ResponseFlagName } from '../response-flags.ts';
import type { Host } from '../upstream/host.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';

export interface AttemptEntry {
  /** What it is on the wire; null where nobody counts that. */
  readonly wire: WireBytes | null;
  host(host: Host, attempts: number): void;
  /** The request goes out. */
  connected(connection: ConnectionEnds, head: string, bodyBytes: number, isRequestComplete: boolean): void;
  sent(bytes: number, isEnd: boolean): void;
  /** The head of the response, which may be for nobody. */
  answered(head: ResponseHead, bodyBytes: number, nowMs: number): void;
  received(bytes: number): void;
  trailers(trailers: Trailers): void;
  /** Why there is no whole response. */
  failed(flag: ResponseFlagName, details: string, transport?: string): void;
  /** It is over; what comes later is not told. */
  finish(): void;
}
