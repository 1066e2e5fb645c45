// Entries of finished requests and connections to a gRPC access-log service. What has gathered goes in one call, a stream of one
// message with the identifier first, whose answer says that it has been taken.

import {
  type AccessLogger,
  type AccessLoggerKind,
  type CallAnswer,
  compileTags,
  type FormatFacts,
  type ReadTag,
  type ReportContext,
  ReportQueue,
} from '../../../data-plane/index.ts';
import { unaryCall } from '../../filters.http/grpc/unary-call.ts';
import { MessageWriter } from '../../filters.http/grpc/wire.ts';
import { encodeHttpEntry, encodeTcpEntry } from './entries.ts';
import type { GrpcLogSettings } from './settings.ts';

const MAX_ANSWER_BYTES = 64 * 1024;
const OK = 200;
/** Fields of a message: entries of requests, of connections. */
const [HTTP_LOGS, TCP_LOGS] = [2, 3];

export const HTTP_GRPC_LOGGER: AccessLoggerKind = {
  open: (settings, context) => new GrpcLogger(settings as GrpcLogSettings, context, HTTP_LOGS),
};

export const TCP_GRPC_LOGGER: AccessLoggerKind = {
  open: (settings, context) => new GrpcLogger(settings as GrpcLogSettings, context, TCP_LOGS),
};

class GrpcLogger implements AccessLogger {
  readonly #settings: GrpcLogSettings;
  readonly #field: number;
  readonly #tags: readonly ReadTag[];
  readonly #queue: ReportQueue;

  constructor(settings: GrpcLogSettings, context: ReportContext, field: number) {
    this.#settings = settings;
    this.#field = field;
    this.#tags = compileTags(settings.tags);
    const { target, generation, flushIntervalMs, bufferBytes, counters } = settings;
    const path = `/envoy.service.accesslog.${generation}.AccessLogService/StreamAccessLogs`;
    const identifier = encodeIdentifier(settings);
    const written = context.counter(counters.written);
    const dropped = context.counter(counters.dropped);
    const lose = (entries: number): void => dropped.add(entries);
    this.#queue = new ReportQueue(context, {
      cluster: target.cluster,
      flushIntervalMs: () => flushIntervalMs,
      isEnough: (_entries, bytes) => bytes >= bufferBytes,
      request: (entries) => unaryCall(target, path, encodeMessage(identifier, field, entries), MAX_ANSWER_BYTES),
      takenOf: (answer, entries) => (isTaken(answer) ? entries : 0),
      count: {
        sent() {},
        timed() {},
        skipped: lose,
        taken: (entries) => written.add(entries),
        refused: lose,
        failed: lose,
        dropped: lose,
      },
    });
  }

  write(facts: FormatFacts): void {
    this.#queue.add(
      this.#field === HTTP_LOGS
        ? encodeHttpEntry(facts, this.#settings, this.#tags)
        : encodeTcpEntry(facts, this.#tags),
    );
  }

  close(): void {
    this.#queue.close();
  }
}

/** Services may end well without any message. */
function isTaken({ status, head, trailers }: CallAnswer): boolean {
  return status === OK && (trailers?.get('grpc-status') ?? head.headerByName('grpc-status')) === '0';
}

function encodeIdentifier({ node, logName }: GrpcLogSettings): Buffer {
  const writer = new MessageWriter();
  writer.message(1, (identifier) => {
    identifier.message(1, (message) => {
      message.text(1, node.id);
      message.text(2, node.cluster);
      if (node.zone !== '') message.message(4, (locality) => locality.text(2, node.zone));
    });
    identifier.text(2, logName);
  });
  return writer.finish();
}

/** @param entries each a field of what holds them. */
function encodeMessage(identifier: Buffer, field: number, entries: readonly Buffer[]): Buffer {
  const writer = new MessageWriter();
  writer.bytes(field, Buffer.concat(entries));
  return Buffer.concat([identifier, writer.finish()]);
}
