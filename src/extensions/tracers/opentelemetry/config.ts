// OpenTelemetryConfig messages → settings of the OpenTelemetry tracer.

import {
  type Conversion,
  durationMsOr,
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
import { convertGrpcTarget } from '../../grpc-service-config.ts';
import { convertHttpTarget, HTTP_SERVICE_SUPPORT } from '../../http-service-config.ts';
import { spanCounters } from '../span-counters-config.ts';
import { attributesOf } from './resource-attributes-config.ts';
import type { OpenTelemetrySettings, SamplerSettings } from './settings.ts';

type OpenTelemetryConfig = MessageTypes['proxy.config.trace.v3.OpenTelemetryConfig'];
type TypedExtension = MessageTypes['proxy.config.core.v3.TypedExtensionConfig'];

const SAMPLERS = 'proxy.extensions.tracers.opentelemetry.samplers.v3';
const DETECTORS = 'proxy.extensions.tracers.opentelemetry.resource_detectors.v3';
const ALWAYS_ON = `${SAMPLERS}.AlwaysOnSamplerConfig`;
const RATIO = `${SAMPLERS}.TraceIdRatioBasedSamplerConfig`;
const PARENT_BASED = `${SAMPLERS}.ParentBasedSamplerConfig`;
const ENVIRONMENT = `${DETECTORS}.EnvironmentResourceDetectorConfig`;
const STATIC = `${DETECTORS}.StaticConfigResourceDetectorConfig`;

const DEFAULT_SERVICE = 'unknown_service:weir';
const DEFAULT_MAX_SPANS = 1024;
const RESOURCE_VARIABLE = 'OTEL_RESOURCE_ATTRIBUTES';
/** Samplers in samplers; nobody means that many. */
const MAX_DEPTH = 8;

export const OPEN_TELEMETRY_TRACING: TracerManifest = {
  support: {
    ...HTTP_SERVICE_SUPPORT,
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
    'proxy.config.core.v3.TypedExtensionConfig (resource detector)': {
      otherwise: rejected(),
      fields: { name: supported(), typed_config: extensions([ENVIRONMENT, STATIC]) },
    },
    'proxy.config.core.v3.TypedExtensionConfig (sampler)': {
      otherwise: rejected(),
      fields: { name: supported(), typed_config: extensions([ALWAYS_ON, RATIO, PARENT_BASED]) },
    },
    [ENVIRONMENT]: { otherwise: supported(), fields: {} },
    [STATIC]: { otherwise: rejected(), fields: { attributes: supported() } },
    [ALWAYS_ON]: { otherwise: supported(), fields: {} },
    [RATIO]: { otherwise: rejected(), fields: { sampling_percentage: supported() } },
    [PARENT_BASED]: { otherwise: rejected(), fields: { wrapped_sampler: supportedAs('sampler') } },
  },
  convert(message, at, conversion) {
    const config = message as OpenTelemetryConfig;
    const target = targetOf(config, at, conversion);
    const sampler = samplerOf(config.sampler, `${at}.sampler`, conversion, 0);
    const resource = resourceOf(config, at, conversion);
    if (target === undefined || sampler === undefined) return undefined;
    const maxSpans = valueOr(config.max_cache_size, DEFAULT_MAX_SPANS);
    const counters = spanCounters('opentelemetry');
    const settings: OpenTelemetrySettings = { target, resource, sampler, maxSpans, counters };
    return { name: 'tracers.opentelemetry', settings, wholeCounters: Object.values(counters) };
  },
};

function targetOf(
  { grpc_service: grpc, http_service: http }: OpenTelemetryConfig,
  at: string,
  conversion: Conversion,
): OpenTelemetrySettings['target'] | undefined {
  if ((grpc === null) === (http === null)) {
    conversion.faults.error(at, 'needs one of grpc_service and http_service');
    return undefined;
  }
  if (http !== null) {
    const target = convertHttpTarget(http, `${at}.http_service`, conversion);
    return target && { kind: 'http', ...target };
  }
  const target = convertGrpcTarget(grpc!, `${at}.grpc_service`, durationMsOr(grpc!.timeout, 0), conversion);
  return target && { kind: 'grpc', ...target };
}

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

function resourceOf(
  config: OpenTelemetryConfig,
  at: string,
  { environment, faults }: Conversion,
): OpenTelemetrySettings['resource'] {
  const attributes = new Map([
    ['telemetry.sdk.name', 'weir'],
    ['telemetry.sdk.language', 'nodejs'],
    ['service.name', config.service_name || DEFAULT_SERVICE],
  ]);
  for (const [index, { typed_config }] of config.resource_detectors.entries()) {
    const opened = openExtension(typed_config);
    if (opened?.typeName === STATIC) {
      const found = (opened.message as MessageTypes[typeof STATIC]).attributes;
      for (const [name, value] of Object.entries(found)) attributes.set(name, value);
    } else if (opened?.typeName === ENVIRONMENT) {
      const found = attributesOf(environment?.[RESOURCE_VARIABLE] ?? '');
      const place = `${at}.resource_detectors[${index}]`;
      if (found === undefined) faults.warning(place, `${RESOURCE_VARIABLE} is no list of name=value: it is not read`);
      for (const [name, value] of found ?? []) attributes.set(name, value);
    }
  }
  return [...attributes].map(([name, value]) => [byteText(name), byteText(value)] as const);
}

function byteText(text: string): string {
  return Buffer.from(text).toString('latin1');
}
