// Spans as OTLP has them (opentelemetry.proto.trace.v1), by the numbers of their fields.

import type { FinishedSpan } from '../../../data-plane/index.ts';
import { MessageWriter } from '../../filters.http/grpc/wire.ts';
import { unixNanoseconds, writeAttribute } from '../../otlp/export.ts';

const KIND_NUMBERS = { server: 2, client: 3 } as const;
const STATUS_ERROR = 2;
const TRACE_ID_DIGITS = 32;

/** One span, as a field of what holds spans. */
export function encodeSpan(span: FinishedSpan): Buffer {
  const { context, kind, name, startMs, endMs, tags, events, isError } = span;
  const spans = new MessageWriter();
  spans.message(2, (message) => {
    message.bytes(1, Buffer.from(context.traceId.padStart(TRACE_ID_DIGITS, '0'), 'hex'));
    message.bytes(2, Buffer.from(context.spanId, 'hex'));
    message.byteText(3, context.state);
    message.bytes(4, Buffer.from(context.parentId, 'hex'));
    message.byteText(5, name);
    message.integer(6, KIND_NUMBERS[kind]);
    message.fixed64(7, unixNanoseconds(startMs));
    message.fixed64(8, unixNanoseconds(endMs));
    for (const [key, value] of tags) writeAttribute(message, 9, key, value);
    for (const event of events) {
      message.message(11, (moment) => {
        moment.fixed64(1, unixNanoseconds(event.atMs));
        moment.text(2, event.name);
      });
    }
    if (isError) message.message(15, (status) => status.integer(3, STATUS_ERROR));
  });
  return spans.finish();
}
