// A service of gRPC with one method that has messages in both directions, by @grpc/grpc-js: what comes is kept, what is told goes to
// all streams, or is what each new one is greeted with.

import type { TestContext } from 'node:test';
import { Server, ServerCredentials, type ServerDuplexStream, type StatusObject, status } from '@grpc/grpc-js';
import type { Type } from 'protobufjs';
import { eventually } from './eventually.ts';

/** As it came. */
export interface Received<Message> {
  /** Number of its stream, from 1. */
  readonly stream: number;
  readonly path: string;
  /** What was said with its stream. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly message: Message;
}

export class StreamService<Request, Response extends object> {
  readonly received: Received<Request>[] = [];
  /** What each new stream is told behind its first message; nothing without it. */
  greeting: Response | undefined;
  port = 0;
  /** Streams stay open though their clients have ended them. */
  keepsStreams = false;
  readonly #response: Type;
  readonly #request: Type;
  readonly #server = new Server({ 'grpc.max_receive_message_length': -1 });
  readonly #calls = new Set<ServerDuplexStream<Buffer, Buffer>>();
  #streams = 0;

  /** @param paths of the method, by all of its names. @param port 0 for any. */
  static async start<Request, Response extends object>(
    t: TestContext,
    paths: readonly string[],
    { request, response }: { readonly request: Type; readonly response: Type },
    port = 0,
  ): Promise<StreamService<Request, Response>> {
    const service = new StreamService<Request, Response>(paths, request, response);
    const onBound = Promise.withResolvers<number>();
    service.#server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? onBound.resolve(bound) : onBound.reject(error),
    );
    service.port = await onBound.promise;
    t.after(() => service.stop());
    return service;
  }

  private constructor(paths: readonly string[], request: Type, response: Type) {
    this.#request = request;
    this.#response = response;
    const asItIs = (bytes: Buffer): Buffer => bytes;
    const codec = {
      requestSerialize: asItIs,
      requestDeserialize: asItIs,
      responseSerialize: asItIs,
      responseDeserialize: asItIs,
    };
    const methods = paths.map((path) => [path, { path, requestStream: true, responseStream: true, ...codec }]);
    const handlers = paths.map((path) => [path, (call: ServerDuplexStream<Buffer, Buffer>) => this.#begin(path, call)]);
    this.#server.addService(Object.fromEntries(methods), Object.fromEntries(handlers));
  }

  /** All streams end at once, and nobody can connect. */
  stop(): void {
    this.#server.forceShutdown();
  }

  get streams(): number {
    return this.#calls.size;
  }

  tell(message: Response): void {
    const bytes = this.#encoded(message);
    for (const call of this.#calls) call.write(bytes);
  }

  tellRaw(bytes: Buffer): void {
    for (const call of this.#calls) call.write(bytes);
  }

  endStreams(code: status = status.OK): void {
    for (const call of this.#calls) {
      if (code === status.OK) call.end();
      else call.emit('error', { code, details: 'ended by the test' } satisfies Partial<StatusObject>);
    }
  }

  /** Resolves with the first message from the place `from` on for which it holds. */
  async until(holds: (received: Received<Request>) => boolean, what: string, from = 0): Promise<Received<Request>> {
    const find = (): Received<Request> | undefined => this.received.slice(from).find(holds);
    await eventually(() => find() !== undefined, what);
    return find()!;
  }

  #begin(path: string, call: ServerDuplexStream<Buffer, Buffer>): void {
    this.#streams += 1;
    const stream = this.#streams;
    let isFirst = true;
    this.#calls.add(call);
    call.on('data', (bytes: Buffer) => {
      const message = this.#request.toObject(this.#request.decode(bytes), { longs: Number, arrays: true }) as Request;
      this.received.push({ stream, path, metadata: call.metadata.getMap(), message });
      if (isFirst && this.greeting !== undefined) call.write(this.#encoded(this.greeting));
      isFirst = false;
    });
    const forget = (): void => void this.#calls.delete(call);
    call.on('error', forget);
    call.on('close', forget);
    call.on('cancelled', forget);
    call.on('end', () => {
      if (!this.keepsStreams) call.end();
    });
  }

  #encoded(message: Response): Buffer {
    return Buffer.from(this.#response.encode(this.#response.fromObject(message)).finish());
  }
}
