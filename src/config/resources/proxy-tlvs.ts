// TLVs of PROXY headers: which are passed on, and which a TCP proxy says of connections that bring none.

import { MAX_TLV_BYTES, type TlvSelection } from '../../base/proxy-header.ts';
import type { TlvSettings } from '../../snapshot/index.ts';
import { ProxyProtocolPassThroughTLVs_PassTLVsMatchType as MatchType } from '../proto/generated/enums.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import type { Conversion } from './conversion.ts';
import { convertSubstitutionFormat } from './format/line-format.ts';

const TLV_HEAD_LENGTH = 3;

type Passed = MessageTypes['proxy.config.core.v3.ProxyProtocolPassThroughTLVs'];
type Entry = MessageTypes['proxy.config.core.v3.TlvEntry'];

/** @returns nothing where none are passed on, to be spread into settings. */
export function convertPassedTlvs(message: Passed | null): { readonly passes?: TlvSelection } {
  if (message === null) return {};
  return { passes: message.match_type === MatchType.INCLUDE_ALL ? 'all' : message.tlv_type };
}

/** @returns nothing for none. */
export function convertSaidTlvs(
  messages: readonly Entry[],
  at: string,
  conversion: Conversion,
): { readonly tlvs?: readonly TlvSettings[] } {
  if (messages.length === 0) return {};
  return { tlvs: messages.flatMap((message, index) => convertSaidTlv(message, `${at}[${index}]`, conversion) ?? []) };
}

function convertSaidTlv(
  { type, value, format_string: format }: Entry,
  at: string,
  conversion: Conversion,
): TlvSettings | undefined {
  const { faults } = conversion;
  if (format === null) {
    const length = TLV_HEAD_LENGTH + value.length;
    if (length > MAX_TLV_BYTES) {
      faults.error(`${at}.value`, `takes ${length} bytes with its head; there is room for ${MAX_TLV_BYTES}`);
    }
    return { type, value: Buffer.from(value).toString('hex') };
  }
  if (value.length > 0) faults.error(`${at}.format_string`, 'cannot stand beside a value');
  const converted = convertSubstitutionFormat(format, `${at}.format_string`, conversion);
  if (converted === undefined) return undefined;
  if (converted.content.kind !== 'text') {
    faults.error(`${at}.format_string.json_format`, 'is no text: use text_format_source');
    return undefined;
  }
  return { type, format: converted.content.segments, omitsEmptyValues: converted.omitEmptyValues };
}
