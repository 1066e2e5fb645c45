// Connections of one worker that have something to write. They do so once in a turn of the event loop, when all sockets
// have been read: what a session has to say to many streams leaves in one write.

export interface Flushable {
  /** Writes what there is. Once for each `add`. */
  flush(): void;
}

export class FlushQueue {
  readonly #onFault: (error: unknown) => void;
  #waiting: Flushable[] = [];
  #spare: Flushable[] = [];
  readonly #run = (): void => this.#flushAll();

  /** @param onFault told of what a flush has thrown, which is a bug; the others get their turn. */
  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault;
  }

  /** Not again before it has been flushed. */
  add(connection: Flushable): void {
    if (this.#waiting.length === 0) setImmediate(this.#run);
    this.#waiting.push(connection);
  }

  #flushAll(): void {
    const waiting = this.#waiting;
    // What is added from here on has a turn of its own.
    this.#waiting = this.#spare;
    for (const connection of waiting) {
      try {
        connection.flush();
      } catch (error) {
        this.#onFault(error);
      }
    }
    waiting.length = 0;
    this.#spare = waiting;
  }
}
