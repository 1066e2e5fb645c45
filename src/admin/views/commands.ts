// What mutating endpoints may have the server do.

export interface DrainOrder {
  readonly inboundOnly: boolean;
  readonly isGraceful: boolean;
  /** After the drain time the listeners go on. */
  readonly keepsListeners: boolean;
}

export type ProfilerKind = 'cpu' | 'heap';

/** What an order came to; a text says what went wrong. */
export type ProfilerOutcome = 'done' | 'is-on' | 'is-off' | { readonly failure: string };

/** What mutating endpoints may do. */
export interface ServerCommands {
  /** Begins the clean shutdown; the answer to the request is already on its way. */
  quit(): void;
  /** Has every log file opened anew by its name: access logs and the log of the process. */
  reopenLogs(): void;
  /** Sets all counters to 0. */
  resetCounters(): void;
  /** Has the health checks that clients make fail, or succeed again. */
  failHealthChecks(isFailing: boolean): void;
  /** Profilers run in all threads, and write their file when they are stopped. */
  startProfiler(kind: ProfilerKind): Promise<ProfilerOutcome>;
  stopProfiler(kind: ProfilerKind): Promise<ProfilerOutcome>;
  /** Has listeners stop: all or those of inbound traffic, at once or after the drain time, in which clients are sent elsewhere. */
  drainListeners(order: DrainOrder): void;
  /**
   * Sets runtime values in the layer that is written while the server runs; an empty one is taken away there. All or none.
   * @returns why nothing has changed; undefined when it has.
   */
  modifyRuntime(changes: ReadonlyMap<string, string>): 'no-admin-layer' | 'full' | undefined;
}
