// OpenTelemetryAccessLogConfig messages → settings of the logger that tells an OpenTelemetry collector.

import {
  type AccessLoggerManifest,
  type Conversion,
  convertTags,
  durationMsOr,
  type MessageTypes,
  parseFormat,
  rejected,
  supported,
  supportedAs,
  supportedWhole,
  valueOr,
  warned,
} from '../../../config/index.ts';
import { COLLECTOR_SUPPORT, convertCollector, detectAttributes, resourceOf } from '../../otlp/collector-config.ts';
import { GRPC_LOG_SUPPORT } from '../grpc/config.ts';
import type { LogValue, OpenTelemetryLogSettings } from './settings.ts';

const CONFIG = 'proxy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig';
type Config = MessageTypes[typeof CONFIG];
type AnyValue = MessageTypes['opentelemetry.proto.common.v1.AnyValue'];
type KeyValueList = MessageTypes['opentelemetry.proto.common.v1.KeyValueList'];

const DEFAULT_INTERVAL_MS = 1000;
const DEFAULT_BUFFER_BYTES = 16_384;
const DEFAULT_TIMEOUT_MS = 5000;
const ROOT = 'access_logs.open_telemetry_access_log.';
/** Lists and maps in each other; nobody means that many. */
const MAX_DEPTH = 16;

export const OPEN_TELEMETRY_LOG: AccessLoggerManifest = {
  support: {
    ...COLLECTOR_SUPPORT,
    ...GRPC_LOG_SUPPORT,
    [CONFIG]: {
      otherwise: rejected(),
      fields: {
        formatters: supportedAs('formatter', 'their operators are there anyway'),
        common_config: supported('the older place of grpc_service and what stands beside it'),
        body: supportedWhole('texts, with command operators, and lists and maps of them'),
        attributes: supportedWhole('as body'),
        resource_attributes: supportedWhole('texts as they stand'),
        disable_builtin_labels: supported(),
        stat_prefix: supported(),
        http_service: supported('in binary form'),
        grpc_service: supported('envoy_grpc only'),
        log_name: supported(),
        buffer_flush_interval: supported(),
        buffer_size_bytes: supported(),
        filter_state_objects_to_log: warned('records have none; `attributes` with %FILTER_STATE(name)% tell it'),
        custom_tags: supported(),
        resource_detectors: supportedAs('resource detector'),
      },
    },
  },
  convert(message, at, conversion) {
    const config = message as Config;
    const common = config.common_config;
    if (common !== null && (config.grpc_service !== null || config.http_service !== null)) {
      conversion.faults.error(`${at}.common_config`, 'cannot be given together with grpc_service or http_service');
    }
    const place = common === null ? at : `${at}.common_config`;
    const services = common === null ? config : { grpc_service: common.grpc_service, http_service: null };
    const target = convertCollector(services, place, DEFAULT_TIMEOUT_MS, conversion);
    const root = config.stat_prefix === '' ? ROOT : `${ROOT}${config.stat_prefix}.`;
    const counters = { written: `${root}logs_written`, dropped: `${root}logs_dropped` };
    const resource = convertResource(config, at, conversion);
    const body = config.body === null ? null : convertValue(config.body, `${at}.body`, conversion, 0);
    const attributes = convertEntries(config.attributes, `${at}.attributes`, conversion, 0);
    const tags = [
      ...convertTags(config.custom_tags, `${at}.custom_tags`, conversion),
      ...convertTags(common?.custom_tags ?? [], `${at}.common_config.custom_tags`, conversion),
    ];
    if (target === undefined || body === undefined) return undefined;
    const timed = target.timeoutMs === 0 ? { ...target, timeoutMs: DEFAULT_TIMEOUT_MS } : target;
    const settings: OpenTelemetryLogSettings = {
      target: timed,
      resource,
      body,
      attributes,
      tags,
      flushIntervalMs: durationMsOr(
        config.buffer_flush_interval ?? common?.buffer_flush_interval ?? null,
        DEFAULT_INTERVAL_MS,
      ),
      bufferBytes: valueOr(config.buffer_size_bytes ?? common?.buffer_size_bytes ?? null, DEFAULT_BUFFER_BYTES),
      counters,
    };
    return { name: 'access_loggers.open_telemetry', settings, wholeCounters: Object.values(counters) };
  },
};

/** What is said of the node, then what is detected, then what the configuration says; what comes later replaces. */
function convertResource(config: Config, at: string, conversion: Conversion): OpenTelemetryLogSettings['resource'] {
  const attributes = new Map<string, string>();
  if (!config.disable_builtin_labels) {
    const { id = '', cluster = '', zone = '' } = conversion.tracing?.node ?? {};
    attributes.set('log_name', config.log_name || (config.common_config?.log_name ?? ''));
    attributes.set('zone_name', zone);
    attributes.set('cluster_name', cluster);
    attributes.set('node_name', id);
  }
  detectAttributes(config.resource_detectors, at, conversion, attributes);
  for (const [index, { key, value }] of (config.resource_attributes?.values ?? []).entries()) {
    if (value?.value === 'string_value') attributes.set(key, value.string_value);
    else conversion.faults.error(`${at}.resource_attributes.values[${index}].value`, 'is no string_value');
  }
  return resourceOf(attributes);
}

/** @returns undefined where a fault says why. */
function convertValue(value: AnyValue, at: string, conversion: Conversion, depth: number): LogValue | undefined {
  if (depth > MAX_DEPTH) {
    conversion.faults.error(at, `more than ${MAX_DEPTH} lists and maps in each other`);
    return undefined;
  }
  switch (value.value) {
    case 'string_value': {
      const format = parseFormat(Buffer.from(value.string_value).toString('latin1'), conversion.environment);
      if (format.error === undefined) return { kind: 'text', segments: format.segments };
      conversion.faults.error(`${at}.string_value`, format.error);
      return undefined;
    }
    case 'array_value': {
      const items = value.array_value!.values.map((item, index) =>
        convertValue(item, `${at}.array_value.values[${index}]`, conversion, depth + 1),
      );
      return { kind: 'list', items: items.filter((item) => item !== undefined) };
    }
    case 'kvlist_value':
      return { kind: 'map', entries: convertEntries(value.kvlist_value, `${at}.kvlist_value`, conversion, depth + 1) };
    default:
      conversion.faults.error(at, 'is no string_value, array_value or kvlist_value');
      return undefined;
  }
}

/** Entries with faults are left out. */
function convertEntries(
  list: KeyValueList | null,
  at: string,
  conversion: Conversion,
  depth: number,
): readonly (readonly [name: string, value: LogValue])[] {
  return (list?.values ?? []).flatMap(({ key, value }, index) => {
    const place = `${at}.values[${index}].value`;
    if (value === null) {
      conversion.faults.error(place, 'is required');
      return [];
    }
    const converted = convertValue(value, place, conversion, depth);
    return converted === undefined ? [] : [[Buffer.from(key).toString('latin1'), converted] as const];
  });
}
