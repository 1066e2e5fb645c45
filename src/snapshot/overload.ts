// What the overload manager of main asks of workers, all together and as it is now. Shares are 0 to 1; 0 asks for nothing.

import type { LoadShedPointName, ScaledTimeoutName } from '../base/overload-names.ts';

/** How short a timeout may get: a time, or a part of what is configured. */
export interface TimeoutFloor {
  readonly minMs: number;
  readonly minScale: number;
}

export interface LoadShedState {
  readonly share: number;
  /** Cell that counts what was turned away. */
  readonly countCell: number;
}

export interface OverloadState {
  /** Of requests, which get 503. */
  readonly refusedRequests: number;
  /** Of responses, which end their connections. */
  readonly endedConnections: number;
  /** Clients wait in the queue of the kernel. */
  readonly stopsAccepting: boolean;
  /** Of connections, which are closed as they come. */
  readonly rejectedConnections: number;
  /** How far timeouts are on the way from what is configured to their floors. */
  readonly shortenedTimeouts: number;
  readonly timeoutFloors: Readonly<Partial<Record<ScaledTimeoutName, TimeoutFloor>>>;
  readonly shedding: Readonly<Partial<Record<LoadShedPointName, LoadShedState>>>;
}

export const NO_OVERLOAD: OverloadState = {
  refusedRequests: 0,
  endedConnections: 0,
  stopsAccepting: false,
  rejectedConnections: 0,
  shortenedTimeouts: 0,
  timeoutFloors: {},
  shedding: {},
};

/** Which streams are to be reset: those that hold the most, in classes that double. */
export interface StreamReset {
  /** Streams that hold less are left alone. */
  readonly fromBytes: number;
  /** Cell that counts them. */
  readonly countCell: number;
}
