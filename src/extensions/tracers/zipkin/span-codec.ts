// Spans as Zipkin's collectors read them, second version: JSON, or messages of protocol buffers.

import type { FinishedSpan } from '../../../data-plane/index.ts';
import { MessageWriter } from '../../filters.http/grpc/wire.ts';
import { microseconds, shownText } from '../span-queue.ts';

export interface SpanCodec {
  readonly contentType: string;
  /** @param service that has made the span. */
  encode(span: FinishedSpan, service: string): Buffer;
  /** The body of a call. */
  joined(spans: readonly Buffer[]): Buffer;
}

const KIND_NUMBERS = { client: 1, server: 2 } as const;
const COMMA = Buffer.from(',');

export const CODECS: Readonly<Record<'json' | 'protobuf', SpanCodec>> = {
  json: {
    contentType: 'application/json',
    encode(span, service) {
      const { context, kind, name, tags, events } = span;
      const timestamp = microseconds(span.startMs);
      return Buffer.from(
        JSON.stringify({
          traceId: context.traceId,
          id: context.spanId,
          ...(context.parentId === '' ? {} : { parentId: context.parentId }),
          kind: kind.toUpperCase(),
          name: shownText(name),
          timestamp,
          duration: durationOf(span),
          localEndpoint: { serviceName: service },
          ...(events.length === 0
            ? {}
            : { annotations: events.map((event) => ({ timestamp: microseconds(event.atMs), value: event.name })) }),
          tags: Object.fromEntries(tags.map(([key, value]) => [shownText(key), shownText(value)])),
          ...(context.isShared ? { shared: true } : {}),
          ...(context.state === 'd' ? { debug: true } : {}),
        }),
      );
    },
    joined: (spans) =>
      Buffer.concat([
        Buffer.from('['),
        ...spans.flatMap((span, index) => (index === 0 ? [span] : [COMMA, span])),
        Buffer.from(']'),
      ]),
  },
  protobuf: {
    contentType: 'application/x-protobuf',
    encode(span, service) {
      const { context, kind, name, tags, events } = span;
      const list = new MessageWriter();
      list.message(1, (message) => {
        message.bytes(1, Buffer.from(context.traceId, 'hex'));
        message.bytes(2, Buffer.from(context.parentId, 'hex'));
        message.bytes(3, Buffer.from(context.spanId, 'hex'));
        message.integer(4, KIND_NUMBERS[kind]);
        message.text(5, shownText(name));
        message.fixed64(6, BigInt(microseconds(span.startMs)));
        message.integer(7, durationOf(span));
        message.message(8, (endpoint) => endpoint.text(1, service));
        for (const event of events) {
          message.message(10, (annotation) => {
            annotation.fixed64(1, BigInt(microseconds(event.atMs)));
            annotation.text(2, event.name);
          });
        }
        for (const [key, value] of tags) {
          message.entry(11, shownText(key), (entry) => entry.text(2, shownText(value)));
        }
        message.integer(12, Number(context.state === 'd'));
        message.integer(13, Number(context.isShared));
      });
      return list.finish();
    },
    joined: (spans) => Buffer.concat(spans),
  },
};

/** A span of no time at all would count as one without a time. */
function durationOf({ startMs, endMs }: FinishedSpan): number {
  return Math.max(1, microseconds(endMs) - microseconds(startMs));
}
