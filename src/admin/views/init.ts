// What is not initialized yet, as the admin interface reads it.

export interface UnreadyView {
  readonly component: 'cluster' | 'listener' | 'server';
  /** Of the listener or cluster; empty for the server. */
  readonly name: string;
  /** Tells one configuration of the name from another; may be empty. */
  readonly message: Uint8Array;
  /** What it waits for. */
  readonly targets: readonly string[];
}

export interface InitView {
  unready(): Iterable<UnreadyView>;
}
