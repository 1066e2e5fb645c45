// Drains of a running server: responses say that they are the last of their connections, so that clients go elsewhere.

/** Gradual: the share of responses that end their connections rises over the drain time. Immediate: all from its start. */
export type DrainStrategy = 'gradual' | 'immediate';

/** A drain that has begun. */
export interface DrainProgress {
  readonly strategy: DrainStrategy;
  /** Threads have clocks of their own: the time that has passed when this is sent. */
  readonly elapsedMs: number;
  readonly durationMs: number;
}

/** By the direction of listeners; null for those that do not drain. */
export interface DrainState {
  readonly inbound: DrainProgress | null;
  readonly others: DrainProgress | null;
}

/** Which listeners: those of traffic that comes to this service, or all. */
export type DrainedListeners = 'inbound' | 'all';
