// What a tap records and in which form, of a TapConfig: whether it came to /tap or stands with a filter.

import type { TapFormat, TapMatch, TapMessage, TapSettings } from '../../snapshot/index.ts';
import { OutputSink_Format as Format } from '../proto/generated/enums.ts';
import type {
  HttpGenericBodyMatch,
  HttpHeadersMatch,
  MatchPredicate,
  OutputSink,
  TapConfig,
} from '../proto/generated/messages.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { convertHeaderMatchers } from '../resources/route-match.ts';
import { runtimeFractionOf } from '../resources/runtime-settings.ts';
import { valueOr } from '../resources/units.ts';

const DEFAULT_BODY_BYTES = 1024;
/** Of one body: what is recorded is held in memory. */
const MOST_BODY_BYTES = 16 * 1024 * 1024;
/** Conditions within conditions. */
const MOST_DEPTH = 64;

const FORMATS: Readonly<Record<number, TapFormat>> = {
  [Format.JSON_BODY_AS_BYTES]: 'json-bytes',
  [Format.JSON_BODY_AS_STRING]: 'json-text',
  [Format.PROTO_BINARY]: 'binary',
  [Format.PROTO_BINARY_LENGTH_DELIMITED]: 'binary-delimited',
  [Format.PROTO_TEXT]: 'text',
};

export interface ConvertedTap {
  readonly settings: TapSettings;
  readonly format: TapFormat;
  /** Where it goes. */
  readonly sink: OutputSink;
}

/** @param config what rules and support have let through. @param configId empty for a tap that nobody asks for. */
export function convertTapConfig(config: TapConfig, configId: string, at: string, faults: FaultSink): ConvertedTap {
  const output = config.output_config!;
  const limit = (field: 'max_buffered_rx_bytes' | 'max_buffered_tx_bytes'): number => {
    const bytes = valueOr(output[field], DEFAULT_BODY_BYTES);
    if (bytes > MOST_BODY_BYTES) {
      faults.error(`${at}.output_config.${field}`, `${bytes} exceeds the limit ${MOST_BODY_BYTES}`);
    }
    return bytes;
  };
  const sink = output.sinks[0]!;
  const settings: TapSettings = {
    configId,
    match: convertRoot(config, at, faults),
    maxRequestBytes: limit('max_buffered_rx_bytes'),
    maxResponseBytes: limit('max_buffered_tx_bytes'),
    isStreamed: output.streaming,
    enabled: runtimeFractionOf(config.tap_enabled),
  };
  return { settings, format: FORMATS[sink.format]!, sink };
}

function convertRoot({ match, match_config: older }: TapConfig, at: string, faults: FaultSink): TapMatch {
  if (match !== null && older !== null) faults.error(`${at}.match_config`, 'is set together with match');
  if (match !== null) return convertMatch(match, `${at}.match`, faults);
  if (older !== null) return convertMatch(older, `${at}.match_config`, faults);
  faults.error(`${at}.match`, 'is required');
  return { kind: 'any' };
}

function convertMatch(predicate: MatchPredicate, at: string, faults: FaultSink, depth = 1): TapMatch {
  if (depth > MOST_DEPTH) {
    faults.error(at, `conditions may be ${MOST_DEPTH} deep`);
    return { kind: 'any' };
  }
  const set = (kind: 'and' | 'or', field: 'and_match' | 'or_match'): TapMatch => {
    const rules = predicate[field]!.rules.map((rule, index) =>
      convertMatch(rule, `${at}.${field}.rules[${index}]`, faults, depth + 1),
    );
    return { kind, rules };
  };
  const fields = (kind: 'headers' | 'trailers', of: TapMessage, field: FieldsField): TapMatch => {
    const { headers } = predicate[field] as HttpHeadersMatch;
    return { kind, of, headers: convertHeaderMatchers(headers, `${at}.${field}.headers`, faults) };
  };
  switch (predicate.rule) {
    case 'and_match':
      return set('and', 'and_match');
    case 'or_match':
      return set('or', 'or_match');
    case 'not_match':
      return { kind: 'not', rule: convertMatch(predicate.not_match!, `${at}.not_match`, faults, depth + 1) };
    case 'http_request_headers_match':
      return fields('headers', 'request', predicate.rule);
    case 'http_request_trailers_match':
      return fields('trailers', 'request', predicate.rule);
    case 'http_response_headers_match':
      return fields('headers', 'response', predicate.rule);
    case 'http_response_trailers_match':
      return fields('trailers', 'response', predicate.rule);
    case 'http_request_generic_body_match':
      return bodyMatch('request', predicate.http_request_generic_body_match!);
    case 'http_response_generic_body_match':
      return bodyMatch('response', predicate.http_response_generic_body_match!);
    default:
      return { kind: 'any' };
  }
}

type FieldsField =
  | 'http_request_headers_match'
  | 'http_request_trailers_match'
  | 'http_response_headers_match'
  | 'http_response_trailers_match';

function bodyMatch(of: TapMessage, { bytes_limit: limitBytes, patterns }: HttpGenericBodyMatch): TapMatch {
  return {
    kind: 'body',
    of,
    limitBytes,
    patterns: patterns.map(({ rule, string_match, binary_match }) =>
      // Bytes of its own: they go to other threads.
      Uint8Array.from(rule === 'binary_match' ? binary_match : Buffer.from(string_match)),
    ),
  };
}
