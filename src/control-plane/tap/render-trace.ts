// What a tap has recorded, in the forms that its readers ask for: a message TraceWrapper, as JSON or in a form of protobuf.

import { TextDecoder } from 'node:util';
import { encodeDelimited, encodeMessage, protoSchema, textOfMessage } from '../../config/index.ts';
import type { TapFormat, TappedBody, TappedFields, TappedMessage, TapTrace } from '../../snapshot/index.ts';

const TYPE = 'proxy.data.tap.v3.TraceWrapper';
const UTF8 = new TextDecoder('utf-8', { fatal: true });
// biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is looked for
const BEYOND_ASCII = /[^\x00-\x7f]/;

type Fields = Readonly<Record<string, unknown>>;

interface Form {
  /** The fields are values of a message, rather than what JSON has for them. */
  readonly isMessage: boolean;
  /** A body as a field of its own kind. */
  readonly body: (bytes: Buffer) => Fields;
  /** Ends with a line end where it is text. */
  readonly render: (message: Fields) => string | Uint8Array;
}

const JSON_FORM = { isMessage: false, render: (message: Fields) => `${JSON.stringify(message, null, 1)}\n` };
const MESSAGE_FORM = { isMessage: true, body: (bytes: Buffer) => ({ as_bytes: bytes }) };

const FORMS: Readonly<Record<TapFormat, Form>> = {
  'json-bytes': { ...JSON_FORM, body: (bytes) => ({ as_bytes: bytes.toString('base64') }) },
  'json-text': { ...JSON_FORM, body: (bytes) => ({ as_string: bytes.toString() }) },
  binary: { ...MESSAGE_FORM, render: (message) => encodeMessage(traceType(), message) },
  'binary-delimited': { ...MESSAGE_FORM, render: (message) => encodeDelimited(traceType(), message) },
  text: { ...MESSAGE_FORM, render: (message) => textOfMessage(traceType(), message) },
};

export function renderTrace(trace: TapTrace, format: TapFormat): string | Uint8Array {
  const form = FORMS[format];
  return form.render(traceMessage(trace, form));
}

function traceType() {
  return protoSchema().messageType(TYPE);
}

function traceMessage(trace: TapTrace, form: Form): Fields {
  if (trace.kind === 'exchange') {
    const { request, response } = trace;
    const whole = (message: TappedMessage) => messageOf(message, form);
    return {
      http_buffered_trace: {
        request: whole(request),
        ...(response === null ? {} : { response: whole(response) }),
      },
    };
  }
  const { exchangeId, piece } = trace;
  const content = 'fields' in piece ? { headers: fieldsOf(piece.fields) } : bodyOf(piece.body, form);
  // Such numbers are texts in JSON.
  const id = form.isMessage ? exchangeId : String(exchangeId);
  return { http_streamed_trace_segment: { trace_id: id, [piece.part]: content } };
}

function messageOf({ headers, body, trailers, receivedMs }: TappedMessage, form: Form): Fields {
  return {
    headers: fieldsOf(headers),
    ...(body === null ? {} : { body: bodyOf(body, form) }),
    trailers: fieldsOf(trailers),
    ...(receivedMs === null ? {} : { headers_received_time: timeOf(receivedMs, form) }),
  };
}

function bodyOf({ bytes, isTruncated }: TappedBody, form: Form): Fields {
  return { ...form.body(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)), truncated: isTruncated };
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

function timeOf(ms: number, { isMessage }: Form): unknown {
  if (!isMessage) return new Date(ms).toISOString();
  return { seconds: Math.floor(ms / 1000), nanos: Math.floor((ms % 1000) * 1_000_000) };
}
