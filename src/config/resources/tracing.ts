// Tracing messages → TracingSettings, and what routes say of the traces of their requests. The tracers themselves convert
// their own messages.

import { TRACING_KEYS } from '../../base/runtime-values.ts';
import type {
  CustomTag,
  FormatSegments,
  Fraction,
  MetadataSource,
  RouteTracing,
  RuntimeSetting,
  TracedNode,
  TracerSettings,
  TraceSampling,
  TracingSettings,
} from '../../snapshot/index.ts';
import { HttpConnectionManager_Tracing_OperationName as OperationName } from '../proto/generated/enums.ts';
import type { SupportTable } from '../support/verdict.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import { parseFormat } from './format/format-string.ts';
import type { CustomTagMessage, FractionalPercent, HcmTracing, Percent, Route, TracerMessage } from './messages.ts';
import { fractionOf } from './runtime-settings.ts';
import { valueOr } from './units.ts';

/** What an extension says of a tracer to those who read configurations. */
export interface TracerManifest {
  /** Rows for its message and for those in it that nothing else leads to. */
  readonly support: SupportTable;
  /** @returns undefined when there are faults. @param at path of its configuration, `tracing.http.typed_config`. */
  readonly convert: (message: object, at: string, conversion: Conversion) => TracerSettings | undefined;
}

/** By the full name of the message that configures the tracer. */
export type TracerManifests = Readonly<Record<string, TracerManifest>>;

/** What connection managers go by beside their own messages. */
export interface TracingContext {
  readonly manifests: TracerManifests;
  readonly node: TracedNode;
  /** That of the bootstrap; null for none. */
  readonly defaultTracer: TracerSettings | null;
}

const NO_NODE: TracedNode = { id: '', cluster: '', zone: '' };
const DEFAULT_PATH_LENGTH = 256;
const MILLION = 1_000_000;
const ALL: Fraction = { numerator: 100, denominator: 100 };

export function convertTracing(message: HcmTracing, at: string, conversion: Conversion): TracingSettings {
  const { tracing } = conversion;
  const byName = message.request_headers_for_tags.map((name) => headerTag(name, name, ''));
  return {
    tracer:
      message.provider === null
        ? (tracing?.defaultTracer ?? null)
        : convertTracer(message.provider, `${at}.provider`, conversion),
    node: tracing?.node ?? NO_NODE,
    sampling: {
      client: setting(TRACING_KEYS.client, percentOf(message.client_sampling)),
      random: setting(TRACING_KEYS.random, percentOf(message.random_sampling)),
      overall: setting(TRACING_KEYS.overall, percentOf(message.overall_sampling)),
    },
    packsReason: true,
    drawsById: true,
    isEgress: message.operation_name === OperationName.EGRESS || conversion.isOutbound === true,
    isVerbose: message.verbose,
    maxPathLength: valueOr(message.max_path_tag_length, DEFAULT_PATH_LENGTH),
    tags: [...byName, ...convertTags(message.custom_tags, `${at}.custom_tags`, conversion)],
    hasUpstreamSpans: valueOr(message.spawn_upstream_span, false),
    operation: nameFormat(message.operation, `${at}.operation`, conversion),
    upstreamOperation: nameFormat(message.upstream_operation, `${at}.upstream_operation`, conversion),
  };
}

/** @returns null for one that this build lacks, which the support table has told of, and for one with faults. */
export function convertTracer(
  { typed_config }: TracerMessage,
  at: string,
  conversion: Conversion,
): TracerSettings | null {
  const opened = openExtension(typed_config);
  const manifest = opened && conversion.tracing?.manifests[opened.typeName];
  return manifest?.convert(opened!.message, `${at}.typed_config`, conversion) ?? null;
}

export function convertRouteTracing(
  { tracing, decorator }: Route,
  at: string,
  conversion: Conversion,
): { readonly tracing?: RouteTracing } {
  if (tracing === null && decorator === null) return {};
  const operation = tracing && nameFormat(tracing.operation, `${at}.tracing.operation`, conversion);
  const upstreamOperation =
    tracing && nameFormat(tracing.upstream_operation, `${at}.tracing.upstream_operation`, conversion);
  return {
    tracing: {
      ...(tracing === null
        ? {}
        : {
            sampling: {
              client: setting(TRACING_KEYS.client, shareOf(tracing.client_sampling)),
              random: setting(TRACING_KEYS.random, shareOf(tracing.random_sampling)),
              overall: setting(TRACING_KEYS.overall, shareOf(tracing.overall_sampling)),
            } satisfies TraceSampling,
            tags: convertTags(tracing.custom_tags, `${at}.tracing.custom_tags`, conversion),
          }),
      ...(operation === null ? {} : { operation }),
      ...(upstreamOperation === null ? {} : { upstreamOperation }),
      ...(decorator === null
        ? {}
        : {
            decorator: {
              operation: byteText(decorator.operation),
              isPropagated: valueOr(decorator.propagate, true),
            },
          }),
    },
  };
}

/** Tags with faults are left out. */
export function convertTags(
  messages: readonly CustomTagMessage[],
  at: string,
  conversion: Conversion,
): readonly CustomTag[] {
  const tags = messages.map((message, index) => convertTag(message, `${at}[${index}]`, conversion));
  return tags.filter((tag) => tag !== undefined);
}

function convertTag(message: CustomTagMessage, at: string, conversion: Conversion): CustomTag | undefined {
  const name = byteText(message.tag);
  switch (message.type) {
    case 'literal':
      return { name, value: { kind: 'literal', text: byteText(message.literal!.value) } };
    case 'environment': {
      const { name: variable, default_value } = message.environment!;
      const text = conversion.environment?.[variable] || default_value;
      return text === '' ? undefined : { name, value: { kind: 'literal', text: byteText(text) } };
    }
    case 'request_header': {
      const { name: header, default_value } = message.request_header!;
      return headerTag(name, header, byteText(default_value));
    }
    case 'metadata': {
      const { kind, metadata_key: key, default_value } = message.metadata!;
      const source = METADATA_KINDS[kind?.kind ?? 'request'];
      if (key === null || source === undefined) {
        conversion.faults.error(`${at}.metadata.metadata_key`, 'is required');
        return undefined;
      }
      const path = [key.key, ...key.path.map((segment) => segment.key)];
      return { name, value: { kind: 'metadata', source, path, missing: byteText(default_value) } };
    }
    case 'value': {
      const segments = nameFormat(message.value, `${at}.value`, conversion);
      return segments === null ? undefined : { name, value: { kind: 'format', segments } };
    }
    default:
      return undefined;
  }
}

const METADATA_KINDS: Readonly<Record<string, MetadataSource>> = {
  request: 'DYNAMIC',
  route: 'ROUTE',
  cluster: 'CLUSTER',
  host: 'UPSTREAM_HOST',
};

function headerTag(name: string, header: string, missing: string): CustomTag {
  return { name, value: { kind: 'request-header', name: header.toLowerCase(), missing } };
}

/** @returns null for none, and for one with a fault. */
function nameFormat(text: string, at: string, { faults, environment }: Conversion): FormatSegments | null {
  if (text === '') return null;
  const { segments, error } = parseFormat(byteText(text), environment);
  if (error !== undefined) faults.error(at, error);
  return segments ?? null;
}

function setting(key: string, share: Fraction): RuntimeSetting<Fraction> {
  return { key, default: share };
}

function percentOf(percent: Percent | null): Fraction {
  return percent === null ? ALL : { numerator: Math.round((percent.value * MILLION) / 100), denominator: MILLION };
}

function shareOf(percent: FractionalPercent | null): Fraction {
  return percent === null ? ALL : fractionOf(percent);
}

function byteText(text: string): string {
  return Buffer.from(text).toString('latin1');
}
