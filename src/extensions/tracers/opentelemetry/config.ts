// OpenTelemetryConfig messages → settings of the OpenTelemetry tracer.

import {
  type Conversion,
  extensions,
  fractionOf,
  type MessageTypes,
  openExtension,
  rejected,
  supported,
  supportedAs,
  type TracerManifest,
  valueOr,
} from '../../../config/index.ts';
import { COLLECTOR_SUPPORT, convertCollector, detectAttributes, resourceOf } from '../../otlp/collector-config.ts';
import { spanCounters } from '../span-counters-config.ts';
import type { OpenTelemetrySettings, SamplerSettings } from './settings.ts';

type OpenTelemetryConfig = MessageTypes['proxy.config.trace.v3.OpenTelemetryConfig'];
type TypedExtension = MessageTypes['proxy.config.core.v3.TypedExtensionConfig'];

const SAMPLERS = 'proxy.extensions.tracers.opentelemetry.samplers.v3';
const ALWAYS_ON = `${SAMPLERS}.AlwaysOnSamplerConfig`;
const RATIO = `${SAMPLERS}.TraceIdRatioBasedSamplerConfig`;
const PARENT_BASED = `${SAMPLERS}.ParentBasedSamplerConfig`;

const DEFAULT_SERVICE = 'unknown_service:weir';
const DEFAULT_MAX_SPANS = 1024;
/** Samplers in samplers; nobody means that many. */
const MAX_DEPTH = 8;

export const OPEN_TELEMETRY_TRACING: TracerManifest = {
  support: {
    ...COLLECTOR_SUPPORT,
    'proxy.config.trace.v3.OpenTelemetryConfig': {
      otherwise: rejected(),
      fields: {
        grpc_service: supported('envoy_grpc only'),
        http_service: supported('in binary form'),
        service_name: supported(),
        resource_detectors: supportedAs('resource detector'),
        sampler: supportedAs('sampler'),
        max_cache_size: supported('1024 when absent'),
      },
    },
    'proxy.config.core.v3.TypedExtensionConfig (sampler)': {
      otherwise: rejected(),
      fields: { name: supported(), typed_config: extensions([ALWAYS_ON, RATIO, PARENT_BASED]) },
    },
    [ALWAYS_ON]: { otherwise: supported(), fields: {} },
    [RATIO]: { otherwise: rejected(), fields: { sampling_percentage: supported() } },
    [PARENT_BASED]: { otherwise: rejected(), fields: { wrapped_sampler: supportedAs('sampler') } },
  },
  convert(message, at, conversion) {
    const config = message as OpenTelemetryConfig;
    const target = convertCollector(config, at, 0, conversion);
    const sampler = samplerOf(config.sampler, `${at}.sampler`, conversion, 0);
    const attributes = new Map([
      ['telemetry.sdk.name', 'weir'],
      ['telemetry.sdk.language', 'nodejs'],
      ['service.name', config.service_name || DEFAULT_SERVICE],
    ]);
    detectAttributes(config.resource_detectors, at, conversion, attributes);
    if (target === undefined || sampler === undefined) return undefined;
    const maxSpans = valueOr(config.max_cache_size, DEFAULT_MAX_SPANS);
    const counters = spanCounters('opentelemetry');
    const settings: OpenTelemetrySettings = {
      target,
      resource: resourceOf(attributes),
      sampler,
      maxSpans,
      counters,
    };
    return { name: 'tracers.opentelemetry', settings, wholeCounters: Object.values(counters) };
  },
};

/** @returns undefined where a fault says why. */
function samplerOf(
  message: TypedExtension | null,
  at: string,
  conversion: Conversion,
  depth: number,
): SamplerSettings | undefined {
  if (message === null) return null;
  const opened = openExtension(message.typed_config);
  switch (opened?.typeName) {
    case ALWAYS_ON:
      return { kind: 'always-on' };
    case RATIO: {
      const share = (opened.message as MessageTypes[typeof RATIO]).sampling_percentage;
      return { kind: 'ratio', share: share === null ? { numerator: 0, denominator: 100 } : fractionOf(share) };
    }
    case PARENT_BASED: {
      const { wrapped_sampler: wrapped } = opened.message as MessageTypes[typeof PARENT_BASED];
      const place = `${at}.typed_config.wrapped_sampler`;
      if (wrapped === null) conversion.faults.error(place, 'is required');
      if (depth === MAX_DEPTH) conversion.faults.error(place, `more than ${MAX_DEPTH} samplers in each other`);
      const root = depth === MAX_DEPTH ? undefined : samplerOf(wrapped, place, conversion, depth + 1);
      return root === undefined ? undefined : { kind: 'parent-based', root };
    }
    default:
      // What this build lacks has been refused by the support table.
      return undefined;
  }
}
