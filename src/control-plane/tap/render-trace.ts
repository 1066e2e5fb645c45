// What a tap has recorded, in the forms that its readers ask for: a message TraceWrapper, as JSON or in binary behind its length.

import { TextDecoder } from 'node:util';
import { encodeDelimited } from '../../config/index.ts';
import type { TapFormat, TappedBody, TappedFields, TappedMessage, TapTrace } from '../../snapshot/index.ts';

const TYPE = 'proxy.data.tap.v3.TraceWrapper';
const UTF8 = new TextDecoder('utf-8', { fatal: true });
// biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is looked for
const BEYOND_ASCII = /[^\x00-\x7f]/;

/** Renders a body as a field of its own kind. */
type RenderBody = (bytes: Buffer) => Readonly<Record<string, unknown>>;

const BODIES: Readonly<Record<TapFormat, RenderBody>> = {
  'json-bytes': (bytes) => ({ as_bytes: bytes.toString('base64') }),
  'json-text': (bytes) => ({ as_string: bytes.toString() }),
  proto: (bytes) => ({ as_bytes: bytes }),
};

/** @returns ends with a line end where it is JSON. */
export function renderTrace(trace: TapTrace, format: TapFormat): string | Uint8Array {
  const isBinary = format === 'proto';
  const message = traceMessage(trace, BODIES[format], isBinary);
  return isBinary ? encodeDelimited(TYPE, message) : `${JSON.stringify(message, null, 1)}\n`;
}

function traceMessage(trace: TapTrace, renderBody: RenderBody, isBinary: boolean): Readonly<Record<string, unknown>> {
  if (trace.kind === 'exchange') {
    const { request, response } = trace;
    const whole = (message: TappedMessage) => messageOf(message, renderBody, isBinary);
    return {
      http_buffered_trace: {
        request: whole(request),
        ...(response === null ? {} : { response: whole(response) }),
      },
    };
  }
  const { exchangeId, piece } = trace;
  const content = 'fields' in piece ? { headers: fieldsOf(piece.fields) } : bodyOf(piece.body, renderBody);
  return {
    http_streamed_trace_segment: { trace_id: isBinary ? exchangeId : String(exchangeId), [piece.part]: content },
  };
}

function messageOf(
  { headers, body, trailers, receivedMs }: TappedMessage,
  renderBody: RenderBody,
  isBinary: boolean,
): Readonly<Record<string, unknown>> {
  return {
    headers: fieldsOf(headers),
    ...(body === null ? {} : { body: bodyOf(body, renderBody) }),
    trailers: fieldsOf(trailers),
    ...(receivedMs === null ? {} : { headers_received_time: timeOf(receivedMs, isBinary) }),
  };
}

function bodyOf({ bytes, isTruncated }: TappedBody, renderBody: RenderBody): Readonly<Record<string, unknown>> {
  return { ...renderBody(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)), truncated: isTruncated };
}

function fieldsOf(fields: TappedFields): readonly Readonly<Record<string, string>>[] {
  return fields.map(([key, value]) => ({ key, value: textOf(value) }));
}

/** Values are bytes; most that are not ASCII are UTF-8. */
function textOf(value: string): string {
  if (!BEYOND_ASCII.test(value)) return value;
  try {
    return UTF8.decode(Buffer.from(value, 'latin1'));
  } catch {
    return value;
  }
}

function timeOf(ms: number, isBinary: boolean): unknown {
  if (!isBinary) return new Date(ms).toISOString();
  return { seconds: Math.floor(ms / 1000), nanos: Math.floor((ms % 1000) * 1_000_000) };
}
