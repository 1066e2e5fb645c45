// What the admin interface tells of its own traffic.

/** Counts the admin interface's own traffic under listener.admin.* and http.admin.*. */
export interface AdminTraffic {
  connectionOpened(): void;
  connectionClosed(end: ConnectionEnd): void;
  /** Descriptors have run short. */
  connectionRefused(): void;
  /** Since it was last told. */
  bytesMoved(received: number, sent: number): void;
  requestStarted(): void;
  requestEnded(end: RequestEnd): void;
}

export interface ConnectionEnd {
  /** Ended by this side rather than by the client. */
  readonly isLocal: boolean;
  /** Requests were without their whole answer. */
  readonly hadRequests: boolean;
  readonly lengthMs: number;
}

export interface RequestEnd {
  /** Of the response, or 0 when the client left before it was complete. */
  readonly status: number;
  readonly durationMs: number;
}
