// One call that messages are streamed over for as long as both sides live; when it ends, the next flush begins another. A
// service that takes nothing for long is given up. Main thread.

import { type ClientWritableStream, connectivityState, type ServiceError } from '@grpc/grpc-js';
import type { StatSinkContext } from '../../../control-plane/index.ts';
import { MessageQueue, type OutgoingMessage } from './message-queue.ts';
import { asItIs, GRPC_CALL, type GrpcServiceSettings, type OpenChannel, ServiceChannel } from './service-channel.ts';

export type StreamContext = Pick<StatSinkContext, 'clock' | 'counts' | 'faults' | 'hostOf' | 'log'>;

/** What waits without any of it being taken. */
const STALLED_AFTER_MS = 15_000;
/** What the end waits for the service to end the stream; the process waits a little longer. */
const LAST_ANSWER_MS = 1500;

interface Stream {
  readonly channel: OpenChannel;
  readonly call: ClientWritableStream<Buffer>;
  /** On their way. */
  readonly messages: Set<OutgoingMessage>;
  /** Those of them that the library has taken before it had a connection: it may come to nothing. */
  readonly handed: Set<OutgoingMessage>;
  /** When it had taken something last, or nothing was left to take. */
  progressMs: number;
}

export class ClientStream {
  readonly #path: string;
  readonly #context: StreamContext;
  readonly #channel: ServiceChannel;
  readonly #queue: MessageQueue;
  #stream: Stream | undefined;
  #onEnd: () => void = () => {};

  /** @param path `/package.Service/Method`. */
  constructor(settings: GrpcServiceSettings, path: string, context: StreamContext) {
    this.#path = path;
    this.#context = context;
    this.#channel = new ServiceChannel(settings, context);
    this.#queue = new MessageQueue(context.counts);
  }

  /** A flush begins: a stream that hangs is given up. */
  begin(): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    if (isConnected(stream)) for (const message of stream.handed) this.#settle(stream, message, true);
    if (stream.messages.size === 0) return;
    if (this.#context.clock.monotonicMs() - stream.progressMs >= STALLED_AFTER_MS) stream.call.cancel();
  }

  /** @param make the message, as the first of a stream or not; not called when nothing can be sent. */
  send(metrics: number, make: (isFirst: boolean) => Buffer): void {
    const isFirst = this.#stream === undefined;
    const stream = this.#stream ?? this.#open();
    if (stream === undefined) {
      this.#queue.drop(metrics);
      return;
    }
    const message = { bytes: make(isFirst), metrics };
    if (!this.#queue.begin(message)) return;
    if (stream.messages.size === 0) stream.progressMs = this.#context.clock.monotonicMs();
    stream.messages.add(message);
    stream.call.write(
      message.bytes,
      this.#context.faults.handler(GRPC_CALL, () => this.#taken(stream, message)),
    );
  }

  /** Ends the stream and waits a moment for the service to do the same. */
  async close(): Promise<void> {
    const stream = this.#stream;
    if (stream !== undefined) {
      const hasEnded = new Promise<void>((resolve) => {
        this.#onEnd = resolve;
      });
      const callOff = this.#context.clock.after(LAST_ANSWER_MS, () => stream.call.cancel());
      stream.call.end();
      await hasEnded;
      callOff();
    }
    this.#channel.close();
  }

  #open(): Stream | undefined {
    const channel = this.#channel.get();
    if (channel === undefined) return undefined;
    channel.cluster?.stats.add('upstream_rq_total');
    channel.cluster?.stats.add('upstream_rq_active');
    const call = channel.client.makeClientStreamRequest<Buffer, Buffer>(
      this.#path,
      asItIs,
      asItIs,
      this.#channel.metadata(),
      {},
      this.#context.faults.handler(GRPC_CALL, (error: ServiceError | null) => this.#ended(stream, error)),
    );
    // The end is told of by the call above.
    call.on(
      'error',
      this.#context.faults.handler(GRPC_CALL, () => {}),
    );
    const progressMs = this.#context.clock.monotonicMs();
    const stream: Stream = { channel, call, messages: new Set(), handed: new Set(), progressMs };
    this.#stream = stream;
    return stream;
  }

  #taken(stream: Stream, message: OutgoingMessage): void {
    if (isConnected(stream)) this.#settle(stream, message, true);
    else if (stream.messages.has(message)) stream.handed.add(message);
  }

  /** Messages of a stream that has ended have been settled with it. */
  #settle(stream: Stream, message: OutgoingMessage, isSent: boolean): void {
    if (!stream.messages.delete(message)) return;
    stream.handed.delete(message);
    stream.progressMs = this.#context.clock.monotonicMs();
    this.#queue.end(message, isSent);
    if (isSent) this.#channel.succeeded();
  }

  #ended(stream: Stream, error: ServiceError | null): void {
    if (this.#stream === stream) this.#stream = undefined;
    this.#onEnd();
    stream.channel.cluster?.stats.add('upstream_rq_active', -1);
    for (const message of stream.messages) this.#settle(stream, message, error === null && stream.handed.has(message));
    if (error !== null) this.#context.counts.add('send_failures');
    this.#channel.failed(stream.channel, error?.message ?? 'it has ended the stream');
  }
}

function isConnected({ channel }: Stream): boolean {
  return channel.client.getChannel().getConnectivityState(false) === connectivityState.READY;
}
