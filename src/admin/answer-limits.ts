// What an answer may cost while it is under way: how many long ones there are at once, and how long a client may take
// nothing of one, or say nothing more of its request (I9). A long answer is made piece by piece, and keeps what it has begun
// to list until its client has read it.

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
  /** How many bytes had come of a client when its last answer ended. */
  readonly #bytesUntilAnswer = new WeakMap<Socket, number>();
  #longAnswers = 0;

  constructor(options: AnswerLimitsOptions, faults: FaultBoundary) {
    this.#options = options;
    this.#faults = faults;
  }

  /** Call before the server listens. @param refuse tells a client that the rest of its request has not come, and ends it. */
  guard(server: Server, refuse: (socket: Socket) => void): void {
    server.timeout = this.#options.stallMs;
    // Which is what Node goes by behind an answer.
    server.keepAliveTimeout = this.#options.stallMs;
    const onTimeout = (socket: Socket): void => {
      const isAnswered = this.#answering.has(socket);
      // An answer that has nothing to say for a while (a stream of events) is its endpoint's affair.
      if (isAnswered && socket.writableLength === 0) return;
      const hasBegun = !isAnswered && socket.bytesRead > (this.#bytesUntilAnswer.get(socket) ?? 0);
      if (!hasBegun || !socket.writable) socket.destroy();
      else refuse(socket);
    };
    server.on('timeout', this.#faults.handler('an idle admin connection', onTimeout));
  }

  /** @param onEnd registers what is called when the answer is complete or its client gone. @returns what is sent. */
  admit(response: AdminResponse, socket: Socket, onEnd: (end: () => void) => void): AdminResponse {
    this.#answering.add(socket);
    onEnd(() => {
      this.#answering.delete(socket);
      this.#bytesUntilAnswer.set(socket, socket.bytesRead);
    });
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
