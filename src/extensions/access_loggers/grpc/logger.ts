// Entries of finished requests and connections to a gRPC access-log service, over one stream that stays. What has gathered is one
// message, the first of a stream with the identifier of who sends it.

import {
  type AccessLogger,
  type AccessLoggerKind,
  compileTags,
  type FormatFacts,
  type ReadTag,
  type ReportContext,
  ReportStream,
} from '../../../data-plane/index.ts';
import { frameHead } from '../../filters.http/grpc/frames.ts';
import { streamRequest } from '../../filters.http/grpc/stream-request.ts';
import { MessageWriter } from '../../filters.http/grpc/wire.ts';
import { encodeHttpEntry, encodeTcpEntry } from './entries.ts';
import type { GrpcLogSettings } from './settings.ts';

const OK = 200;
const NO_BYTES = Buffer.alloc(0);
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
  readonly #stream: ReportStream;

  constructor(settings: GrpcLogSettings, context: ReportContext, field: number) {
    this.#settings = settings;
    this.#field = field;
    this.#tags = compileTags(settings.tags);
    const { target, generation, flushIntervalMs, bufferBytes, counters } = settings;
    const identifier = encodeIdentifier(settings);
    const written = context.counter(counters.written);
    const dropped = context.counter(counters.dropped);
    this.#stream = new ReportStream(context, {
      request: streamRequest(target, `/envoy.service.accesslog.${generation}.AccessLogService/StreamAccessLogs`),
      flushIntervalMs,
      bufferBytes,
      timeoutMs: target.timeoutMs,
      message: (entries, isFirst) => encodeMessage(isFirst ? identifier : NO_BYTES, field, entries),
      isWell: ({ status, head, trailers }) =>
        status === OK && (trailers?.get('grpc-status') ?? head?.headerByName('grpc-status')) === '0',
      count: { taken: (entries) => written.add(entries), lost: (entries) => dropped.add(entries) },
    });
  }

  write(facts: FormatFacts): void {
    this.#stream.add(
      this.#field === HTTP_LOGS
        ? encodeHttpEntry(facts, this.#settings, this.#tags)
        : encodeTcpEntry(facts, this.#tags),
    );
  }

  close(): Promise<void> {
    return this.#stream.close();
  }
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

/** Framed. @param entries each a field of what holds them. */
function encodeMessage(identifier: Buffer, field: number, entries: readonly Buffer[]): Buffer {
  const writer = new MessageWriter();
  writer.bytes(field, Buffer.concat(entries));
  const logs = writer.finish();
  return Buffer.concat([frameHead(0, identifier.length + logs.length), identifier, logs]);
}
