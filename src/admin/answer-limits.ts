// What an answer may cost while it is under way: how many long ones there are at once, and how long a client may take
// nothing of one (I9). A long answer is made piece by piece, and keeps what it has begun to list until its client has read it.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import { type AdminResponse, textResponse } from './response.ts';

export interface AnswerLimitsOptions {
  readonly mostLongAnswers: number;
  /** Time in which a client has to take something of what waits for it. */
  readonly stallMs: number;
}

export const ANSWER_LIMITS: AnswerLimitsOptions = { mostLongAnswers: 32, stallMs: 60_000 };

export class AnswerLimits {
  readonly #options: AnswerLimitsOptions;
  readonly #faults: FaultBoundary;
  readonly #answering = new WeakSet<Socket>();
  #longAnswers = 0;

  constructor(options: AnswerLimitsOptions, faults: FaultBoundary) {
    this.#options = options;
    this.#faults = faults;
  }

  /** Call before the server listens. */
  watch(server: Server): void {
    server.timeout = this.#options.stallMs;
    const onTimeout = (socket: Socket): void => {
      // An answer that has nothing to say for a while (a stream of events) is its endpoint's affair.
      if (socket.writableLength > 0 || !this.#answering.has(socket)) socket.destroy();
    };
    server.on('timeout', this.#faults.handler('an idle admin connection', onTimeout));
  }

  /** @param onEnd registers what is called when the answer is complete or its client gone. @returns what is sent. */
  admit(response: AdminResponse, socket: Socket, onEnd: (end: () => void) => void): AdminResponse {
    this.#answering.add(socket);
    onEnd(() => this.#answering.delete(socket));
    const { body } = response;
    if (typeof body === 'string' || body instanceof Uint8Array) return response;
    if (this.#longAnswers >= this.#options.mostLongAnswers) return busy(this.#options.mostLongAnswers);
    this.#longAnswers += 1;
    onEnd(() => {
      this.#longAnswers -= 1;
    });
    return response;
  }
}

function busy(most: number): AdminResponse {
  return {
    ...textResponse(`${most} long answers are under way; ask again later\n`, 503),
    headers: { 'retry-after': '1' },
  };
}
