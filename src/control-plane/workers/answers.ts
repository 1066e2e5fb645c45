// What a worker answers to an order that has a port of its own, until it closes that or has ended. Main thread.

import { on } from 'node:events';
import type { MessagePort } from 'node:worker_threads';

export class Answers {
  readonly #port: MessagePort;
  readonly #messages: NodeJS.AsyncIterator<unknown[]>;

  constructor(port: MessagePort) {
    this.#port = port;
    this.#messages = on(port, 'message', { close: ['close'] });
    // Whoever waits for a worker is kept alive by that.
    port.unref();
  }

  /** Undefined behind the last one. */
  async next(): Promise<string | undefined> {
    const { done, value } = await this.#messages.next();
    return done ? undefined : (value[0] as string);
  }

  send(message: string): void {
    this.#port.postMessage(message);
  }

  /** Nobody wants to know any more. */
  close(): void {
    this.#port.close();
  }
}
