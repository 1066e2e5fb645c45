// Calls with one answer each, several of them at a time. Each has a deadline, so that a service that does not answer holds
// nothing for long. Main thread.

import { type ServiceError, status } from '@grpc/grpc-js';
import type { StatSinkContext } from '../../../control-plane/index.ts';
import { MessageQueue, type OutgoingMessage } from './message-queue.ts';
import { asItIs, GRPC_CALL, type GrpcServiceSettings, type OpenChannel, ServiceChannel } from './service-channel.ts';

export type UnaryContext = Pick<StatSinkContext, 'clock' | 'counts' | 'faults' | 'hostOf' | 'log'>;

export interface UnaryMethod {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Told of each answer. */
  readonly onAnswer: (bytes: Uint8Array) => void;
}

/** What the end waits for answers; the process waits a little longer. */
const LAST_ANSWERS_MS = 1500;
/** Of the service or the way to it, rather than of what was sent. */
const UNREACHABLE: readonly number[] = [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED];

export class UnaryCalls {
  readonly #method: UnaryMethod;
  readonly #timeoutMs: number;
  readonly #context: UnaryContext;
  readonly #channel: ServiceChannel;
  readonly #queue: MessageQueue;
  readonly #running = new Set<{ cancel(): void }>();
  #onIdle: () => void = () => {};

  constructor(settings: GrpcServiceSettings, method: UnaryMethod, context: UnaryContext) {
    this.#method = method;
    this.#timeoutMs = settings.timeoutMs;
    this.#context = context;
    this.#channel = new ServiceChannel(settings, context);
    this.#queue = new MessageQueue(context.counts);
  }

  /** Sends it now, or drops it. */
  send(message: OutgoingMessage): void {
    const channel = this.#channel.get();
    if (channel === undefined) this.#queue.drop(message.metrics);
    else if (this.#queue.begin(message)) this.#call(channel, message);
  }

  /** Waits a moment for answers. */
  async close(): Promise<void> {
    if (this.#running.size > 0) {
      const isIdle = new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
      const callOff = this.#context.clock.after(LAST_ANSWERS_MS, () => {
        for (const call of this.#running) call.cancel();
      });
      await isIdle;
      callOff();
    }
    this.#channel.close();
  }

  #call(channel: OpenChannel, message: OutgoingMessage): void {
    const deadline = this.#context.clock.wallMs() + this.#timeoutMs;
    channel.cluster?.stats.add('upstream_rq_total');
    channel.cluster?.stats.add('upstream_rq_active');
    const onAnswer = (error: ServiceError | null, answer?: Buffer): void => {
      this.#running.delete(call);
      this.#ended(channel, message, error, answer);
    };
    const call = channel.client.makeUnaryRequest(
      this.#method.path,
      asItIs,
      asItIs,
      message.bytes,
      this.#channel.metadata(),
      { deadline },
      this.#context.faults.handler(GRPC_CALL, onAnswer),
    );
    this.#running.add(call);
  }

  #ended(channel: OpenChannel, message: OutgoingMessage, error: ServiceError | null, answer?: Buffer): void {
    channel.cluster?.stats.add('upstream_rq_active', -1);
    this.#queue.end(message, error === null);
    if (this.#running.size === 0) this.#onIdle();
    if (error === null) {
      this.#channel.succeeded();
      this.#method.onAnswer(answer!);
      return;
    }
    this.#context.counts.add('send_failures');
    if (error.code === status.DEADLINE_EXCEEDED) channel.cluster?.stats.add('upstream_rq_timeout');
    if (UNREACHABLE.includes(error.code)) this.#channel.failed(channel, error.message);
  }
}
