// What the admin interface tells of its own traffic.

/** Counts the admin interface's own traffic under listener.admin.* and http.admin.*. */
export interface AdminTraffic {
  connectionOpened(): void;
  connectionClosed(): void;
  /** Descriptors have run short. */
  connectionRefused(): void;
  requestStarted(): void;
  /** @param status of the response, or 0 when the client left before it was complete. */
  requestEnded(status: number): void;
}
