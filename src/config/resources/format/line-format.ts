// SubstitutionFormatString, and the older format fields of access logs → LineFormat.

import type { FormatSegments, JsonFormat, LineFormat } from '../../../snapshot/index.ts';
import type { Conversion } from '../conversion.ts';
import { readDataSource } from '../data-source.ts';
import type { Struct, SubstitutionFormatString, Value } from '../messages.ts';
import { parseFormat } from './format-string.ts';

/** The line of an access log that names no format. */
const DEFAULT_TEXT =
  '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-PROXY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" ' +
  '%RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ' +
  '%RESP(X-PROXY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" ' +
  '"%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"\n';

export function defaultLineFormat(): LineFormat {
  return textFormat(parseFormat(DEFAULT_TEXT).segments ?? [], false);
}

/** @returns undefined when nothing can be made of it; faults say why. */
export function convertSubstitutionFormat(
  message: SubstitutionFormatString,
  at: string,
  conversion: Conversion,
): LineFormat | undefined {
  const { omit_empty_values: omitEmptyValues } = message;
  switch (message.format) {
    case 'text_format':
      return convertTextFormat(Buffer.from(message.text_format), `${at}.text_format`, conversion, omitEmptyValues);
    case 'text_format_source': {
      const path = `${at}.text_format_source`;
      const text = readDataSource(message.text_format_source, path, conversion);
      return convertTextFormat(text, path, conversion, omitEmptyValues);
    }
    case 'json_format':
      return message.json_format === null
        ? undefined
        : convertJsonFormat(message.json_format, `${at}.json_format`, conversion, { isTyped: true, omitEmptyValues });
    default:
      return undefined;
  }
}

/** @param text UTF-8, as it will be written. */
export function convertTextFormat(
  text: Uint8Array,
  at: string,
  conversion: Conversion,
  omitEmptyValues = false,
): LineFormat | undefined {
  const segments = segmentsOf(Buffer.from(text).toString('latin1'), at, conversion);
  return segments && textFormat(segments, omitEmptyValues);
}

export function convertJsonFormat(
  struct: Struct,
  at: string,
  conversion: Conversion,
  options: { readonly isTyped: boolean; readonly omitEmptyValues: boolean },
): LineFormat {
  const root = objectFormat(struct, at, conversion);
  return {
    content: { kind: 'json', root, isTyped: options.isTyped },
    omitEmptyValues: options.omitEmptyValues,
  };
}

function textFormat(segments: FormatSegments, omitEmptyValues: boolean): LineFormat {
  return { content: { kind: 'text', segments }, omitEmptyValues };
}

/** Keys are sorted: a Struct has no order of its own, and log entries should look alike. */
function objectFormat(struct: Struct, at: string, conversion: Conversion): JsonFormat {
  const entries = Object.entries(struct.fields).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    kind: 'object',
    entries: entries.map(([key, value]) => [key, valueFormat(value, `${at}.${key}`, conversion)] as const),
  };
}

function valueFormat(value: Value, at: string, conversion: Conversion): JsonFormat {
  switch (value.kind) {
    case 'stringValue': {
      const text = Buffer.from(value.stringValue).toString('latin1');
      return { kind: 'text', segments: segmentsOf(text, at, conversion) ?? [] };
    }
    case 'numberValue':
      return { kind: 'constant', value: value.numberValue };
    case 'boolValue':
      return { kind: 'constant', value: value.boolValue };
    case 'structValue':
      return objectFormat(value.structValue!, at, conversion);
    case 'listValue':
      return {
        kind: 'list',
        items: value.listValue!.values.map((item, index) => valueFormat(item, `${at}[${index}]`, conversion)),
      };
    default:
      return { kind: 'constant', value: null };
  }
}

/** @param text byte text: literals are written as they are. */
function segmentsOf(text: string, at: string, { faults, environment }: Conversion): FormatSegments | undefined {
  const format = parseFormat(text, environment);
  if (format.error !== undefined) faults.error(at, format.error);
  return format.segments;
}
