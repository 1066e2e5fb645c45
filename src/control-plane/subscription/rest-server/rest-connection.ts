// The two ways to ask a host by HTTP: a question at a time, over a connection that is kept where the server lets it. They are those
// of health checks, with answers that may be longer. Main thread.

import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import { type Http1Codec, Method } from '../../../wasm/http1.ts';
import { type AnswerState, HttpAnswer } from '../../cluster-manager/health-check/http-answer.ts';
import { Http2Connection } from '../../cluster-manager/health-check/http2-connection.ts';
import type { ProbeOrigin, ProbeTarget } from '../../cluster-manager/health-check/probe.ts';
import { type ConnectionListener, ProbeConnection } from '../../cluster-manager/health-check/probe-connection.ts';

/** Of an answer: as long as a file may be that is a source. */
export const MOST_ANSWER_BYTES = 32 * 1024 * 1024;

export interface RestQuestion {
  readonly path: string;
  /** JSON. */
  readonly body: Buffer;
}

/** Told of one answer; of `onEnd` and `onBroken` one, once. */
export interface RestListener {
  /** Lent. */
  onBytes(bytes: Buffer): void;
  onEnd(status: number): void;
  /** @param reason why there is no answer, or none that is whole. @param isUnanswered the question has been sent, and nothing has come back. */
  onBroken(reason: string, isUnanswered: boolean): void;
}

export interface RestConnection {
  /** When nothing is asked over it. */
  ask(target: ProbeTarget, question: RestQuestion): void;
  /** Nothing is told any more. Idempotent. */
  close(): void;
}

export class Http1RestConnection implements RestConnection, ConnectionListener {
  readonly #codec: Http1Codec;
  readonly #listener: RestListener;
  readonly #connection: ProbeConnection;
  #request: Buffer = Buffer.alloc(0);
  /** Undefined when nothing is asked. */
  #answer: HttpAnswer | undefined;
  #hasHeard = false;

  constructor(origin: ProbeOrigin, codec: Http1Codec, faults: FaultBoundary, listener: RestListener) {
    this.#codec = codec;
    this.#listener = listener;
    this.#connection = new ProbeConnection(origin, ['http/1.1'], faults, this, MOST_ANSWER_BYTES);
  }

  ask(target: ProbeTarget, { path, body }: RestQuestion): void {
    const lines = fieldsOf(target, body).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#request = Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), body]);
    this.#connection.open(target);
  }

  close(): void {
    this.#answer = undefined;
    this.#connection.close();
  }

  onOpen(socket: { write(bytes: Buffer): unknown }): void {
    this.#hasHeard = false;
    this.#answer = new HttpAnswer(this.#codec, Method.POST, (bytes) => this.#listener.onBytes(bytes));
    socket.write(this.#request);
  }

  onBytes(bytes: Buffer): void {
    this.#hasHeard = true;
    if (this.#answer !== undefined) this.#proceed(this.#answer, this.#answer.read(bytes));
  }

  onLost(reason: string | undefined): void {
    const answer = this.#answer;
    // It may be lost before it was there.
    if (answer === undefined || reason !== undefined) this.#broken(reason ?? 'closed before the answer');
    else this.#proceed(answer, answer.end());
  }

  #proceed(answer: HttpAnswer, state: AnswerState): void {
    if (state.kind === 'reading') return;
    if (state.kind === 'broken') {
      this.#broken(state.reason);
      return;
    }
    this.#answer = undefined;
    if (state.isReusable) this.#connection.keep();
    else this.#connection.close();
    this.#listener.onEnd(answer.facts!.status);
  }

  #broken(reason: string): void {
    const isUnanswered = this.#answer !== undefined && !this.#hasHeard;
    this.close();
    this.#listener.onBroken(reason, isUnanswered);
  }
}

export class Http2RestConnection implements RestConnection {
  readonly #connection: Http2Connection;

  constructor(origin: ProbeOrigin, faults: FaultBoundary, listener: RestListener) {
    let status = 0;
    let isUnanswered = false;
    const heard = {
      onSent: (): void => {
        isUnanswered = true;
      },
      onHead: (of: number): void => {
        status = of;
        isUnanswered = false;
      },
      onBytes: (bytes: Buffer): void => listener.onBytes(bytes),
      onTrailers: (): void => {},
      onEnd: (): void => listener.onEnd(status),
      onBroken: (reason: string): void => {
        const wasUnanswered = isUnanswered;
        isUnanswered = false;
        this.close();
        listener.onBroken(reason, wasUnanswered);
      },
    };
    this.#connection = new Http2Connection(origin, faults, heard, MOST_ANSWER_BYTES);
  }

  ask(target: ProbeTarget, { path, body }: RestQuestion): void {
    this.#connection.ask(target, { method: 'POST', path, fields: fieldsOf(target, body), body });
  }

  close(): void {
    this.#connection.close();
  }
}

function fieldsOf({ authority }: ProbeTarget, body: Buffer): readonly (readonly [name: string, value: string])[] {
  return [
    ['host', authority],
    ['content-type', 'application/json'],
    ['content-length', String(body.length)],
  ];
}
