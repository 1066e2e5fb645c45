// Statistics as a stream of events, as the admin interface hands it on.

/** What one client gets. Ends when the server does; `close` says that the client has gone. */
export interface EventFeedView extends AsyncIterable<readonly string[]> {
  close(): void;
}

export interface EventStreamView {
  /** @returns pieces of text that belong together with each flush; undefined when as many listen as may. */
  listen(): EventFeedView | undefined;
}
