// The tap that an operator has asked for at the admin interface: tells the workers, and takes what they record to the one who
// reads it. Main thread. There is one at a time, and it ends with its reader. Who reads too slowly misses traces, which are
// counted: nothing piles up. What filters record by themselves passes through here on its way to files.

import { BoundedFeed } from '../../base/bounded-feed.ts';
import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { Logger } from '../../log/index.ts';
import { type TapFile, type TapSession, type TapSettings, type TapTrace, tapTraceCost } from '../../snapshot/index.ts';
import { TapFilesWriter } from './tap-files.ts';

/** Recorded and not yet taken by the reader. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

export interface TapManagerDependencies {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Pick<Logger, 'warning'>;
  /** Has every worker record for this session, and those that start later; null ends it. */
  readonly publish: (session: TapSession | null) => void;
  /** Of the tap filters that there are now. */
  readonly configIds: () => ReadonlySet<string>;
  /** TAP_STATS. */
  readonly stats: {
    add(name: 'traces_total' | 'traces_dropped', n?: number): void;
    set(name: 'active', value: number): void;
  };
}

/** What may go on for this long at most; 0 for no limit. */
export interface TapOptions extends TapSettings {
  readonly timeoutMs: number;
}

export type TapRefusal = 'unknown-config-id' | 'attached';

interface Attached {
  readonly session: TapSession;
  readonly feed: BoundedFeed<TapTrace>;
  readonly cancelTimeout: () => void;
}

export class TapManager {
  readonly #deps: TapManagerDependencies;
  readonly #files: TapFilesWriter;
  #attached: Attached | undefined;
  #sessions = 0;

  constructor(deps: TapManagerDependencies) {
    this.#deps = deps;
    this.#files = new TapFilesWriter({
      log: deps.log,
      faults: deps.faults,
      onWritten: () => deps.stats.add('traces_total'),
      onDropped: (count) => deps.stats.add('traces_dropped', count),
    });
  }

  /** Some filter can record. */
  get isConfigured(): boolean {
    return this.#deps.configIds().size > 0;
  }

  /** @returns the traces, until its reader closes them, the time is over or the server stops. */
  begin({ timeoutMs, ...settings }: TapOptions): BoundedFeed<TapTrace> | TapRefusal {
    if (this.#attached !== undefined) return 'attached';
    if (!this.#deps.configIds().has(settings.configId)) return 'unknown-config-id';
    this.#sessions += 1;
    const session = { id: this.#sessions, settings, files: null };
    const feed = new BoundedFeed<TapTrace>({
      limit: MAX_WAITING_BYTES,
      costOf: tapTraceCost,
      onClosed: () => this.#detach(session.id),
    });
    const cancelTimeout = timeoutMs === 0 ? () => {} : this.#deps.clock.after(timeoutMs, () => this.#end(session.id));
    this.#attached = { session, feed, cancelTimeout };
    this.#deps.stats.set('active', 1);
    this.#deps.publish(session);
    return feed;
  }

  /** A worker has recorded something, for a session or a file. @param dropped what it could not send before this. */
  traced(to: number | TapFile, trace: TapTrace, dropped: number): void {
    if (typeof to === 'object') {
      this.#files.write(to, trace);
      this.dropped('files', dropped);
      return;
    }
    if (this.#attached?.session.id !== to) return;
    const isTaken = this.#attached.feed.offer(trace);
    if (isTaken) this.#deps.stats.add('traces_total');
    this.dropped(to, dropped + (isTaken ? 0 : 1));
  }

  dropped(from: number | 'files', count: number): void {
    const isKnown = from === 'files' || this.#attached?.session.id === from;
    if (count > 0 && isKnown) this.#deps.stats.add('traces_dropped', count);
  }

  /** Ends what is under way, for the end of the process. Idempotent. */
  close(): void {
    if (this.#attached !== undefined) this.#end(this.#attached.session.id);
  }

  /** The reader still gets what waits. */
  #end(sessionId: number): void {
    const feed = this.#attached?.feed;
    this.#detach(sessionId);
    feed?.end();
  }

  #detach(sessionId: number): void {
    if (this.#attached?.session.id !== sessionId) return;
    this.#attached.cancelTimeout();
    this.#attached = undefined;
    this.#deps.stats.set('active', 0);
    this.#deps.publish(null);
  }
}
