// The body of POST /tap → what is to be recorded, and in which form it goes to whoever asked.

import type { TapMatch, TapMessage, TapSettings } from '../../snapshot/index.ts';
import { DocumentFaults } from '../bootstrap/document-faults.ts';
import { formatFault, hasErrors } from '../fault.ts';
import { FaultList } from '../fault-list.ts';
import { unpackAny } from '../proto/any.ts';
import { OutputSink_Format as Format } from '../proto/generated/enums.ts';
import type {
  HttpGenericBodyMatch,
  HttpHeadersMatch,
  MatchPredicate,
  OutputSink,
  TapConfig,
  TapRequest,
} from '../proto/generated/messages.ts';
import { int64ToNumber } from '../proto/int64.ts';
import { loadMessage } from '../proto/load-message.ts';
import { protoSchema } from '../proto/root.ts';
import { Validator } from '../proto/rules/validator.ts';
import { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { convertHeaderMatchers } from '../resources/route-match.ts';
import { runtimeFractionOf } from '../resources/runtime-settings.ts';
import { durationMsOr, valueOr } from '../resources/units.ts';
import { SupportCheck } from '../support/index.ts';
import { TAP_SUPPORT } from './tap-support.ts';

export type TapFormat = 'json-bytes' | 'json-text' | 'proto';

export interface TapOrder {
  readonly settings: TapSettings;
  readonly format: TapFormat;
  /** Null to have each trace as it comes; otherwise all together, when there are as many or the time is over. */
  readonly collects: { readonly mostTraces: number; readonly timeoutMs: number } | null;
}

export type TapOrderResult = { readonly order: TapOrder } | { readonly refusal: string };

const TYPE = 'proxy.admin.v3.TapRequest';
const DEFAULT_BODY_BYTES = 1024;
/** Of one body: what is recorded is held in memory. */
const MOST_BODY_BYTES = 16 * 1024 * 1024;
/** Conditions within conditions. */
const MOST_DEPTH = 64;

const FORMATS: Readonly<Record<number, TapFormat>> = {
  [Format.JSON_BODY_AS_BYTES]: 'json-bytes',
  [Format.JSON_BODY_AS_STRING]: 'json-text',
  [Format.PROTO_BINARY_LENGTH_DELIMITED]: 'proto',
};

/** @param text YAML or JSON. */
export function readTapOrder(text: string): TapOrderResult {
  const list = new FaultList();
  const order = readOrder(text, list);
  if (order !== undefined && !hasErrors(list.all)) return { order };
  const errors = list.all.filter(({ severity }) => severity === 'error');
  return { refusal: errors.map((fault) => `${formatFault({ ...fault, file: 'body' })}\n`).join('') };
}

function readOrder(text: string, list: FaultList): TapOrder | undefined {
  const schema = protoSchema();
  const type = schema.messageType(TYPE);
  const unknownFields = new UnknownFieldPolicy('reject');
  const loaded = loadMessage(type, { configPath: '', configYaml: text }, { faults: list, unknownFields, schema });
  if (loaded === undefined) return undefined;
  const { message, generation, document } = loaded;
  const faults = new DocumentFaults(document, list);
  new Validator().validate({ type, message, generation }, '', {
    report: (at, fault) => faults.error(at, fault),
    unpack: (any) => unpackAny(any, schema),
  });
  new SupportCheck(TAP_SUPPORT, (name) => schema.messageType(name)).check(TYPE, message, '', faults);
  return list.hasErrors ? undefined : convertOrder(message as unknown as TapRequest, faults);
}

/** What rules and support have let through. */
function convertOrder({ config_id: configId, tap_config: config }: TapRequest, faults: FaultSink): TapOrder {
  const output = config!.output_config!;
  const sink = output.sinks[0]!;
  const at = 'tap_config.output_config';
  const limit = (field: 'max_buffered_rx_bytes' | 'max_buffered_tx_bytes'): number => {
    const bytes = valueOr(output[field], DEFAULT_BODY_BYTES);
    if (bytes > MOST_BODY_BYTES) faults.error(`${at}.${field}`, `${bytes} exceeds the limit ${MOST_BODY_BYTES}`);
    return bytes;
  };
  return {
    settings: {
      configId,
      match: convertRoot(config!, faults),
      maxRequestBytes: limit('max_buffered_rx_bytes'),
      maxResponseBytes: limit('max_buffered_tx_bytes'),
      isStreamed: output.streaming,
      enabled: runtimeFractionOf(config!.tap_enabled),
    },
    format: FORMATS[sink.format]!,
    collects: convertCollecting(sink),
  };
}

function convertCollecting({ buffered_admin: buffered }: OutputSink): TapOrder['collects'] {
  if (buffered === null) return null;
  return { mostTraces: int64ToNumber(buffered.max_traces), timeoutMs: durationMsOr(buffered.timeout, 0) };
}

function convertRoot({ match, match_config: older }: TapConfig, faults: FaultSink): TapMatch {
  if (match !== null && older !== null) faults.error('tap_config.match_config', 'is set together with match');
  if (match !== null) return convertMatch(match, 'tap_config.match', faults);
  if (older !== null) return convertMatch(older, 'tap_config.match_config', faults);
  faults.error('tap_config.match', 'is required');
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
