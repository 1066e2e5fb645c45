// Where OTLP goes, and what it says of its resource: what the tracer and the access logger read alike in their messages.

import {
  type Conversion,
  durationMsOr,
  extensions,
  type MessageTypes,
  openExtension,
  rejected,
  type SupportTable,
  supported,
} from '../../config/index.ts';
import { convertGrpcTarget } from '../grpc-service-config.ts';
import { convertHttpTarget, HTTP_SERVICE_SUPPORT } from '../http-service-config.ts';
import { attributesOf } from './resource-attributes-config.ts';
import type { OtlpTarget, ResourceAttributes } from './target.ts';

type TypedExtension = MessageTypes['proxy.config.core.v3.TypedExtensionConfig'];

const DETECTORS = 'proxy.extensions.tracers.opentelemetry.resource_detectors.v3';
const ENVIRONMENT = `${DETECTORS}.EnvironmentResourceDetectorConfig`;
const STATIC = `${DETECTORS}.StaticConfigResourceDetectorConfig`;
const RESOURCE_VARIABLE = 'OTEL_RESOURCE_ATTRIBUTES';

/** The role of detectors is `resource detector`. */
export const COLLECTOR_SUPPORT: SupportTable = {
  ...HTTP_SERVICE_SUPPORT,
  'proxy.config.core.v3.TypedExtensionConfig (resource detector)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([ENVIRONMENT, STATIC]) },
  },
  [ENVIRONMENT]: { otherwise: supported(), fields: {} },
  [STATIC]: { otherwise: rejected(), fields: { attributes: supported() } },
};

interface Services {
  readonly grpc_service: MessageTypes['proxy.config.core.v3.GrpcService'] | null;
  readonly http_service: MessageTypes['proxy.config.core.v3.HttpService'] | null;
}

/** @param defaultTimeoutMs of calls over gRPC. @returns undefined where a fault says why. */
export function convertCollector(
  { grpc_service: grpc, http_service: http }: Services,
  at: string,
  defaultTimeoutMs: number,
  conversion: Conversion,
): OtlpTarget | undefined {
  if ((grpc === null) === (http === null)) {
    conversion.faults.error(at, 'needs one of grpc_service and http_service');
    return undefined;
  }
  if (http !== null) {
    const target = convertHttpTarget(http, `${at}.http_service`, conversion);
    return target && { kind: 'http', ...target };
  }
  const timeoutMs = durationMsOr(grpc!.timeout, defaultTimeoutMs);
  const target = convertGrpcTarget(grpc!, `${at}.grpc_service`, timeoutMs, conversion);
  return target && { kind: 'grpc', ...target };
}

/** Adds what detectors find; what is found later replaces. @param at path of the message that has them. */
export function detectAttributes(
  detectors: readonly TypedExtension[],
  at: string,
  { environment, faults }: Conversion,
  attributes: Map<string, string>,
): void {
  for (const [index, { typed_config }] of detectors.entries()) {
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
}

export function resourceOf(attributes: ReadonlyMap<string, string>): ResourceAttributes {
  return [...attributes].map(([name, value]) => [byteText(name), byteText(value)] as const);
}

function byteText(text: string): string {
  return Buffer.from(text).toString('latin1');
}
