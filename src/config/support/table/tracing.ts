// Support rows of tracing: what of it is not a tracer's own.

import { extensionsElseWarned, rejected, type SupportTable, supported, supportedWhole } from '../verdict.ts';
import { HTTP_CONNECTION_MANAGER, READ_AS_TYPED } from './extensions.ts';

const SHARE = 'the runtime may override it';

export const TRACING_SUPPORT: SupportTable = {
  [`${HTTP_CONNECTION_MANAGER}.Tracing`]: {
    otherwise: rejected(),
    fields: {
      operation_name: supported('or traffic_direction of the listener'),
      request_headers_for_tags: supported(),
      client_sampling: supported(`${SHARE}, by \`tracing.client_enabled\``),
      random_sampling: supported(`${SHARE}, by \`tracing.random_sampling\``),
      overall_sampling: supported(`${SHARE}, by \`tracing.global_enabled\``),
      verbose: supported('moments of the request as events'),
      max_path_tag_length: supported(),
      custom_tags: supported(),
      provider: supported(),
      spawn_upstream_span: supported(),
      operation: supported(),
      upstream_operation: supported(),
    },
  },
  'proxy.config.trace.v3.Tracing': { otherwise: rejected(), fields: { http: supported() } },
  'proxy.config.trace.v3.Tracing.Http': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      config: supported(READ_AS_TYPED),
      typed_config: extensionsElseWarned([], 'nobody is told of these requests'),
    },
  },
  'proxy.config.route.v3.Tracing': {
    otherwise: rejected(),
    fields: {
      client_sampling: supported(),
      random_sampling: supported(),
      overall_sampling: supported(),
      custom_tags: supported(),
      operation: supported(),
      upstream_operation: supported(),
    },
  },
  'proxy.config.route.v3.Decorator': {
    otherwise: rejected(),
    fields: { operation: supported(), propagate: supported() },
  },
  'proxy.type.tracing.v3.CustomTag': {
    otherwise: rejected(),
    fields: {
      tag: supported(),
      literal: supportedWhole(),
      environment: supportedWhole(),
      request_header: supportedWhole(),
      metadata: supportedWhole(),
      value: supported(),
    },
  },
};
