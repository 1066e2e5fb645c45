// Support rows of access logs, their filters and their formats.

import {
  extensionsElseWarned,
  onlyElseWarned,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
} from '../verdict.ts';
import { METADATA_FORMATTER, READ_AS_TYPED, REQ_WITHOUT_QUERY } from './extensions.ts';

/** A log without its filter would say more than the operator wants to be written down. */
const UNFILTERED = rejected();

export const ACCESS_LOG_SUPPORT: SupportTable = {
  'proxy.config.accesslog.v3.AccessLog': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      filter: supported(),
      config: supported(READ_AS_TYPED),
      typed_config: extensionsElseWarned([], 'this access log is not written'),
    },
  },
  'proxy.config.accesslog.v3.AccessLogFilter': {
    otherwise: UNFILTERED,
    fields: {
      status_code_filter: supported(),
      duration_filter: supported(),
      not_health_check_filter: supported(),
      runtime_filter: supported(),
      and_filter: supported(),
      or_filter: supported(),
      header_filter: supported(),
      response_flag_filter: supported(),
      grpc_status_filter: supported(),
      log_type_filter: supported(),
      metadata_filter: supported('of what HTTP and network filters have said'),
      traceable_filter: supported('passes requests whose tracing a service has forced, as x-request-id says'),
      extension_filter: rejected('filters by CEL are left out: combine the others by and_filter and or_filter'),
    },
  },
  'proxy.config.accesslog.v3.StatusCodeFilter': { otherwise: rejected(), fields: { comparison: supported() } },
  'proxy.config.accesslog.v3.DurationFilter': { otherwise: rejected(), fields: { comparison: supported() } },
  'proxy.config.accesslog.v3.ComparisonFilter': {
    otherwise: rejected(),
    fields: { op: supported(), value: supported() },
  },
  'proxy.config.core.v3.RuntimeUInt32': {
    otherwise: rejected(),
    fields: { default_value: supported(), runtime_key: supported() },
  },
  'proxy.config.accesslog.v3.MetadataFilter': {
    otherwise: rejected(),
    fields: { matcher: supportedWhole(), match_if_key_not_found: supported('true when absent') },
  },
  'proxy.config.accesslog.v3.TraceableFilter': { otherwise: supported(), fields: {} },
  'proxy.config.accesslog.v3.NotHealthCheckFilter': { otherwise: supported(), fields: {} },
  'proxy.config.accesslog.v3.RuntimeFilter': {
    otherwise: rejected(),
    fields: {
      runtime_key: supported(),
      percent_sampled: supported(),
      use_independent_randomness: onlyElseWarned([true], 'the choice is always independent'),
    },
  },
  'proxy.config.accesslog.v3.AndFilter': { otherwise: rejected(), fields: { filters: supported() } },
  'proxy.config.accesslog.v3.OrFilter': { otherwise: rejected(), fields: { filters: supported() } },
  'proxy.config.accesslog.v3.HeaderFilter': { otherwise: rejected(), fields: { header: supported() } },
  'proxy.config.accesslog.v3.ResponseFlagFilter': { otherwise: rejected(), fields: { flags: supported() } },
  'proxy.config.accesslog.v3.GrpcStatusFilter': {
    otherwise: rejected(),
    fields: { statuses: supported(), exclude: supported() },
  },
  'proxy.config.accesslog.v3.LogTypeFilter': {
    otherwise: rejected(),
    fields: { types: supported(), exclude: supported() },
  },
  'proxy.config.core.v3.SubstitutionFormatString': {
    otherwise: rejected(),
    fields: {
      text_format: supported(),
      json_format: supported(),
      text_format_source: supported(),
      omit_empty_values: supported(),
      content_type: supported('concerns replies only'),
      json_format_options: supported('keys are always sorted'),
      formatters: supportedAs('formatter', 'their operators are there anyway'),
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (formatter)': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      typed_config: extensionsElseWarned([REQ_WITHOUT_QUERY, METADATA_FORMATTER], 'operators of others are unknown'),
    },
  },
  [REQ_WITHOUT_QUERY]: { otherwise: supported(), fields: {} },
  [METADATA_FORMATTER]: { otherwise: supported(), fields: {} },
  'proxy.config.core.v3.JsonFormatOptions': { otherwise: rejected(), fields: { sort_properties: supported() } },
};
