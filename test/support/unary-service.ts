// A service of gRPC with one method, as those of others are: it knows the messages by their names, from a description of its own.

import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import type protobuf from 'protobufjs';

export type Plain = Record<string, unknown>;

const asItIs = (bytes: Buffer): Buffer => bytes;

export interface AskedCall {
  /** The service that was called. */
  readonly path: string;
  readonly message: Plain;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What it answers: a message as plain data, bytes in place of one, a status of failure, or nothing ever. */
export type Answer = Plain | Buffer | { readonly fails: number } | 'silence';

export class UnaryService implements AsyncDisposable {
  readonly asked: AskedCall[] = [];
  answer: Answer;
  /** Before that, one after the other. */
  readonly first: Answer[] = [];
  port = 0;
  /** Calls that have been answered, or ended by their client. */
  over = 0;
  readonly #server = new Server();
  readonly #request: protobuf.Type;
  readonly #response: protobuf.Type;

  constructor(request: protobuf.Type, response: protobuf.Type, answer: Answer) {
    this.#request = request;
    this.#response = response;
    this.answer = answer;
  }

  /** @param paths of the method, of each generation of the service. */
  async listen(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      const method = { path, requestStream: false, responseStream: false } as const;
      const bytes = { requestSerialize: asItIs, requestDeserialize: asItIs };
      const answers = { responseSerialize: asItIs, responseDeserialize: asItIs };
      this.#server.addService(
        { method: { ...method, ...bytes, ...answers } },
        {
          method: (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) =>
            this.#answer(path, call, reply),
        },
      );
    }
    this.port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
        error ? reject(error) : resolve(port),
      );
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown();
    await Promise.resolve();
  }

  #answer(path: string, call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>): void {
    const message = this.#request.toObject(this.#request.decode(call.request), { longs: Number }) as Plain;
    this.asked.push({ path, message, metadata: call.metadata.getMap() });
    call.on('cancelled', () => {
      this.over += 1;
    });
    const answer = this.first.shift() ?? this.answer;
    if (answer === 'silence') return;
    if (Buffer.isBuffer(answer)) reply(null, answer);
    else if ('fails' in answer) reply({ code: answer.fails as number, details: 'no' });
    else reply(null, Buffer.from(this.#response.encode(this.#response.fromObject(answer)).finish()));
  }
}
