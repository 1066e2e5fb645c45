// Spans as OTLP has them (opentelemetry.proto.trace.v1), by the numbers of their fields.

import type { FinishedSpan } from '../../../data-plane/index.ts';
import { MessageWriter, readMessage } from '../../filters.http/grpc/wire.ts';

const KIND_NUMBERS = { server: 2, client: 3 } as const;
const STATUS_ERROR = 2;
const SCOPE = 'weir';
const NANOSECONDS = 1_000_000n;
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

/** An ExportTraceServiceRequest. @param spans as encodeSpan has made them. */
export function encodeRequest(
  resource: readonly (readonly [name: string, value: string])[],
  spans: readonly Buffer[],
): Buffer {
  const request = new MessageWriter();
  request.message(1, (ofResource) => {
    ofResource.message(1, (message) => {
      for (const [key, value] of resource) writeAttribute(message, 1, key, value);
    });
    const scope = new MessageWriter();
    scope.message(1, (message) => message.text(1, SCOPE));
    ofResource.bytes(2, Buffer.concat([scope.finish(), ...spans]));
  });
  return request.finish();
}

/** How many spans the collector says that it has not taken. @param bytes an ExportTraceServiceResponse, or anything else. */
export function refusedSpans(bytes: Buffer): number {
  let refused = 0;
  try {
    readMessage(bytes, (field, reader) => {
      if (field !== 1) return false;
      reader.message((part) => {
        if (part !== 1) return false;
        refused = reader.integer();
        return true;
      });
      return true;
    });
  } catch {
    // It has answered well, in a way of its own.
    return 0;
  }
  return refused;
}

function writeAttribute(message: MessageWriter, field: number, key: string, value: string): void {
  message.message(field, (attribute) => {
    attribute.byteText(1, key);
    attribute.message(2, (any) => any.byteText(1, value));
  });
}

/** Times have no more than their microseconds. */
function unixNanoseconds(ms: number): bigint {
  return (BigInt(Math.round(ms * 1000)) * NANOSECONDS) / 1000n;
}
