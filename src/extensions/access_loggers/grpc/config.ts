// HttpGrpcAccessLogConfig and TcpGrpcAccessLogConfig messages → settings of the loggers that tell a gRPC service.

import {
  type AccessLoggerManifest,
  type Conversion,
  convertTags,
  durationMsOr,
  type MessageTypes,
  rejected,
  type SupportTable,
  supported,
  valueOr,
  warned,
} from '../../../config/index.ts';
import { convertGrpcTarget } from '../../grpc-service-config.ts';
import type { GrpcLogSettings } from './settings.ts';

type Http = MessageTypes['proxy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig'];
type Common = NonNullable<Http['common_config']>;

const PACKAGE = 'proxy.extensions.access_loggers.grpc.v3';
const DEFAULT_INTERVAL_MS = 1000;
const DEFAULT_BUFFER_BYTES = 16_384;
const DEFAULT_TIMEOUT_MS = 5000;
/** Number of ApiVersion; a field rule refuses others. */
const V2 = 1;
const COUNTERS = {
  written: 'access_logs.grpc_access_log.logs_written',
  dropped: 'access_logs.grpc_access_log.logs_dropped',
};

/** Of what several loggers have in common. */
export const GRPC_LOG_SUPPORT: SupportTable = {
  [`${PACKAGE}.CommonGrpcAccessLogConfig`]: {
    otherwise: rejected(),
    fields: {
      log_name: supported(),
      grpc_service: supported('envoy_grpc only; `timeout` is what a stream that takes nothing has'),
      buffer_flush_interval: supported(),
      buffer_size_bytes: supported(),
      filter_state_objects_to_log: warned(
        'entries have none; `custom_tags` with %FILTER_STATE(name)% as their value tell it',
      ),
      transport_api_version: supported('AUTO is V3'),
      grpc_stream_retry_policy: warned('streams are opened again after up to 0.5 s, which doubles up to 10 s'),
      custom_tags: supported(),
    },
  },
};

export const HTTP_GRPC_LOG: AccessLoggerManifest = {
  support: {
    ...GRPC_LOG_SUPPORT,
    [`${PACKAGE}.HttpGrpcAccessLogConfig`]: {
      otherwise: rejected(),
      fields: {
        common_config: supported(),
        additional_request_headers_to_log: supported(),
        additional_response_headers_to_log: supported(),
        additional_response_trailers_to_log: supported(),
      },
    },
  },
  convert(message, at, conversion) {
    const log = message as Http;
    const common = commonOf(log.common_config, at, conversion);
    if (common === undefined) return undefined;
    const settings: GrpcLogSettings = {
      ...common,
      requestHeaders: lowerCase(log.additional_request_headers_to_log),
      responseHeaders: lowerCase(log.additional_response_headers_to_log),
      responseTrailers: lowerCase(log.additional_response_trailers_to_log),
    };
    return { name: 'access_loggers.http_grpc', settings, wholeCounters: Object.values(COUNTERS) };
  },
};

export const TCP_GRPC_LOG: AccessLoggerManifest = {
  support: {
    ...GRPC_LOG_SUPPORT,
    [`${PACKAGE}.TcpGrpcAccessLogConfig`]: { otherwise: rejected(), fields: { common_config: supported() } },
  },
  convert(message, at, conversion) {
    const settings = commonOf((message as Pick<Http, 'common_config'>).common_config, at, conversion);
    return settings && { name: 'access_loggers.tcp_grpc', settings, wholeCounters: Object.values(COUNTERS) };
  },
};

/** @returns undefined where a fault says why. */
function commonOf(common: Common | null, at: string, conversion: Conversion): GrpcLogSettings | undefined {
  const service = common?.grpc_service ?? null;
  // Without them a field rule has a fault.
  if (common === null || service === null) return undefined;
  const place = `${at}.common_config`;
  const timeoutMs = durationMsOr(service.timeout, DEFAULT_TIMEOUT_MS);
  const target = convertGrpcTarget(service, `${place}.grpc_service`, timeoutMs, conversion);
  if (target === undefined) return undefined;
  return {
    target,
    generation: common.transport_api_version === V2 ? 'v2' : 'v3',
    logName: common.log_name,
    node: conversion.tracing?.node ?? { id: '', cluster: '', zone: '' },
    flushIntervalMs: durationMsOr(common.buffer_flush_interval, DEFAULT_INTERVAL_MS),
    bufferBytes: valueOr(common.buffer_size_bytes, DEFAULT_BUFFER_BYTES),
    tags: convertTags(common.custom_tags, `${place}.custom_tags`, conversion),
    requestHeaders: [],
    responseHeaders: [],
    responseTrailers: [],
    counters: COUNTERS,
  };
}

function lowerCase(names: readonly string[]): readonly string[] {
  return names.map((name) => name.toLowerCase());
}
