// RateLimit messages of routes and virtual hosts → the descriptors that they make.

import { utf8Bytes } from '../../base/byte-text.ts';
import type { DescribedValue, FormatSegments, RateLimitAction, RateLimitSettings } from '../../snapshot/index.ts';
import {
  RateLimit_Action_MetaData_Source as MetadataSource,
  RateLimit_XRateLimitOption as TellOption,
} from '../proto/generated/enums.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { Conversion } from './conversion.ts';
import { parseFormat } from './format/format-string.ts';
import { convertHeaderMatchers, convertQueryMatchers } from './route-match.ts';
import { valueOr } from './units.ts';

type RateLimitMessage = MessageTypes['proxy.config.route.v3.RateLimit'];
type ActionMessage = MessageTypes['proxy.config.route.v3.RateLimit.Action'];
type MetadataKey = MessageTypes['proxy.type.metadata.v3.MetadataKey'];

const V4_BITS = 32;
const V6_BITS = 128;

export function convertRateLimits(
  messages: readonly RateLimitMessage[],
  at: string,
  conversion: Conversion,
): readonly RateLimitSettings[] {
  return messages.map((message, index) => {
    const here = `${at}[${index}]`;
    const key = message.limit?.dynamic_metadata?.metadata_key ?? null;
    return {
      stage: valueOr(message.stage, 0),
      actions: message.actions
        .map((action, place) => convertAction(action, `${here}.actions[${place}]`, conversion))
        .filter((action) => action !== undefined)
        .map(inBytes),
      hits: convertHits(message, `${here}.hits_addend`, conversion),
      disableKey: message.disable_key,
      limitAt: key && { namespace: key.key, path: wayOf(key) },
      isAtEnd: message.apply_on_stream_done,
      tellsLimits:
        message.x_ratelimit_option === TellOption.UNSPECIFIED ? null : message.x_ratelimit_option !== TellOption.OFF,
    };
  });
}

function convertHits(
  { hits_addend: hits }: RateLimitMessage,
  at: string,
  { faults, environment }: Conversion,
): RateLimitSettings['hits'] {
  if (hits === null) return null;
  if (hits.number !== null) {
    if (hits.format !== '') faults.error(`${at}.format`, 'cannot be given together with number');
    return int64ToNumber(hits.number.value);
  }
  if (hits.format === '') return null;
  const format = parseFormat(utf8Bytes(hits.format), environment);
  if (format.error === undefined) return format.segments;
  faults.error(`${at}.format`, format.error);
  return null;
}

/** Descriptors are byte text, as what they take from requests is. */
function inBytes(action: RateLimitAction): RateLimitAction {
  return 'key' in action ? { ...action, key: utf8Bytes(action.key) } : action;
}

function wayOf({ path }: MetadataKey): readonly string[] {
  return path.map(({ key }) => key);
}

/** @returns undefined for what the support table or a field rule has refused. */
function convertAction(action: ActionMessage, at: string, conversion: Conversion): RateLimitAction | undefined {
  const { faults } = conversion;
  switch (action.action_specifier) {
    case 'source_cluster':
      return { kind: 'fixed', key: 'source_cluster', value: literal(conversion.localCluster ?? ''), byDefault: '' };
    case 'destination_cluster':
      return { kind: 'destination-cluster' };
    case 'request_headers': {
      const { header_name: name, descriptor_key: key, skip_if_absent: isLeftOutIfAbsent } = action.request_headers!;
      return { kind: 'request-header', key, name: name.toLowerCase(), isLeftOutIfAbsent };
    }
    case 'query_parameters': {
      const said = action.query_parameters!;
      const { query_parameter_name: name, descriptor_key: key, skip_if_absent: isLeftOutIfAbsent } = said;
      return { kind: 'query-parameter', key, name, isLeftOutIfAbsent };
    }
    case 'remote_address':
      return { kind: 'remote-address' };
    case 'masked_remote_address': {
      const { v4_prefix_mask_len: v4, v6_prefix_mask_len: v6 } = action.masked_remote_address!;
      return { kind: 'masked-remote-address', v4Bits: valueOr(v4, V4_BITS), v6Bits: valueOr(v6, V6_BITS) };
    }
    case 'generic_key': {
      const said = action.generic_key!;
      const value = convertValue(said, `${at}.generic_key`, conversion);
      return value && { kind: 'fixed', key: said.descriptor_key || 'generic_key', ...value };
    }
    case 'header_value_match': {
      const said = action.header_value_match!;
      const value = convertValue(said, `${at}.header_value_match`, conversion);
      return (
        value && {
          kind: 'match',
          key: said.descriptor_key || 'header_match',
          ...value,
          expects: valueOr(said.expect_match, true),
          headers: convertHeaderMatchers(said.headers, `${at}.header_value_match.headers`, faults),
          queryParameters: [],
        }
      );
    }
    case 'query_parameter_value_match': {
      const said = action.query_parameter_value_match!;
      const here = `${at}.query_parameter_value_match.query_parameters`;
      const value = convertValue(said, `${at}.query_parameter_value_match`, conversion);
      return (
        value && {
          kind: 'match',
          key: said.descriptor_key || 'query_match',
          ...value,
          expects: valueOr(said.expect_match, true),
          headers: [],
          queryParameters: convertQueryMatchers(said.query_parameters, here, faults),
        }
      );
    }
    case 'dynamic_metadata':
      return metadataAction({ ...pick(action.dynamic_metadata!), source: 'DYNAMIC', isLeftOutIfAbsent: false });
    case 'metadata': {
      const said = action.metadata!;
      const source = said.source === MetadataSource.ROUTE_ENTRY ? 'ROUTE' : 'DYNAMIC';
      return metadataAction({ ...pick(said), source, isLeftOutIfAbsent: said.skip_if_absent });
    }
    default:
      return undefined;
  }
}

/** A text that is always the same, as a format. */
function literal(text: string): FormatSegments {
  return text === '' ? [] : [utf8Bytes(text)];
}

interface ValueWords {
  readonly descriptor_value: string;
  readonly default_value: string;
}

/** @returns undefined for what is no format; a fault says why. */
function convertValue(
  { descriptor_value: value, default_value: byDefault }: ValueWords,
  at: string,
  { faults, environment }: Conversion,
): DescribedValue | undefined {
  const format = parseFormat(utf8Bytes(value), environment);
  if (format.error === undefined) return { value: format.segments, byDefault: utf8Bytes(byDefault) };
  faults.error(`${at}.descriptor_value`, format.error);
  return undefined;
}

interface MetadataWords {
  readonly descriptor_key: string;
  readonly metadata_key: MetadataKey | null;
  readonly default_value: string;
}

/** Fields of a message left at their defaults are none of its own. */
function pick({ descriptor_key, metadata_key, default_value }: MetadataWords): MetadataWords {
  return { descriptor_key, metadata_key, default_value };
}

function metadataAction(
  said: MetadataWords & { readonly source: 'DYNAMIC' | 'ROUTE'; readonly isLeftOutIfAbsent: boolean },
): RateLimitAction {
  return {
    kind: 'metadata',
    key: said.descriptor_key,
    source: said.source,
    namespace: said.metadata_key?.key ?? '',
    path: said.metadata_key === null ? [] : wayOf(said.metadata_key),
    byDefault: said.default_value,
    isLeftOutIfAbsent: said.isLeftOutIfAbsent,
  };
}
