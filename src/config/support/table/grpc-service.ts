// Support rows of services of gRPC that this proxy asks: filters, stat sinks and the bootstrap name them.

import { rejected, type SupportTable, supported, supportedWhole, warned } from '../verdict.ts';

const CLEARTEXT = 'stat sinks speak cleartext to gRPC services';
const NO_RETRY = 'nothing is asked twice';

export const GRPC_SERVICE_SUPPORT: SupportTable = {
  'proxy.config.core.v3.GrpcService': {
    otherwise: rejected(),
    fields: {
      envoy_grpc: supported(),
      google_grpc: supported('of stat sinks'),
      timeout: supported(
        'of single calls; none where resources come from; unless said 10 s in stat sinks, 200 ms in filters',
      ),
      initial_metadata: supported(),
      retry_policy: warned(NO_RETRY),
    },
  },
  'proxy.config.core.v3.GrpcService.EnvoyGrpc': {
    otherwise: rejected(),
    fields: {
      cluster_name: supported('its hosts in turn; stat sinks speak cleartext'),
      authority: supported(),
      retry_policy: warned(NO_RETRY),
      max_receive_message_length: supported('of management servers; other answers are short, or refused'),
      skip_envoy_headers: warned('stat sinks send none, filters send theirs'),
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc': {
    otherwise: rejected(CLEARTEXT),
    fields: {
      target_uri: supported(),
      stat_prefix: supported('the sink counts under its own name'),
      channel_credentials: supported(),
      per_stream_buffer_limit_bytes: warned('16 MiB wait at most'),
      channel_args: warned('connections have the settings of clusters'),
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.ChannelCredentials': {
    otherwise: rejected(CLEARTEXT),
    fields: { local_credentials: supportedWhole(CLEARTEXT) },
  },
  'proxy.config.ratelimit.v3.RateLimitServiceConfig': {
    otherwise: rejected(),
    fields: {
      cluster_name: supported(),
      grpc_service: supported('envoy_grpc only; the timeout is that of the filter'),
      use_data_plane_proto: supported('nothing else is spoken'),
      transport_api_version: supported('AUTO is V3'),
    },
  },
};
