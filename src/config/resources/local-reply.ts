// LocalReplyConfig message → LocalReplySettings.

import type { LocalReplySettings, ReplyFormat, ReplyMapperSettings } from '../../snapshot/index.ts';
import { convertAccessLogFilter } from './access-log/access-log-filter.ts';
import type { Conversion } from './conversion.ts';
import { readDataSource } from './data-source.ts';
import { convertSubstitutionFormat } from './format/line-format.ts';
import { convertHeaderAdditions } from './header-edits.ts';
import type { LocalReplyConfig, ResponseMapper, SubstitutionFormatString } from './messages.ts';

const CONTENT_TYPES = { text: 'text/plain', json: 'application/json' } as const;

/** Mappers with faults are left out; there is at least one error then. */
export function convertLocalReplies(
  message: LocalReplyConfig,
  at: string,
  conversion: Conversion,
): LocalReplySettings | undefined {
  const mappers = message.mappers
    .map((mapper, index) => convertMapper(mapper, `${at}.mappers[${index}]`, conversion))
    .filter((mapper) => mapper !== undefined);
  const format = convertReplyFormat(message.body_format, `${at}.body_format`, conversion);
  return mappers.length === 0 && format === null ? undefined : { mappers, format };
}

function convertMapper(message: ResponseMapper, at: string, conversion: Conversion): ReplyMapperSettings | undefined {
  // Without one it has already broken a field rule.
  const filter = message.filter && convertAccessLogFilter(message.filter, `${at}.filter`, conversion.faults);
  const mapper = {
    status: message.status_code?.value ?? null,
    // A copy of its own: a view would take all of the buffer that it looks at along to every worker.
    body: message.body && new Uint8Array(readDataSource(message.body, `${at}.body`, conversion)),
    headerEdits: convertHeaderAdditions(message.headers_to_add, `${at}.headers_to_add`, conversion),
    format: convertReplyFormat(message.body_format_override, `${at}.body_format_override`, conversion),
  };
  return filter ? { filter, ...mapper } : undefined;
}

/** @returns null for none, and for one with a fault. */
export function convertReplyFormat(
  message: SubstitutionFormatString | null,
  at: string,
  conversion: Conversion,
): ReplyFormat | null {
  const line = message && convertSubstitutionFormat(message, at, conversion);
  if (!line) return null;
  return { line, contentType: message.content_type || CONTENT_TYPES[line.content.kind] };
}
