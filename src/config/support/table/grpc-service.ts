// Support rows of services of gRPC that this proxy asks: filters, stat sinks and the bootstrap name them.

import { rejected, type SupportTable, supported, supportedWhole, warned } from '../verdict.ts';

const CLEARTEXT = 'stat sinks speak cleartext to gRPC services';
const OTHER_CREDENTIALS =
  'tokens of the cloud are not fetched: say ssl_credentials and access_token, or name a cluster in envoy_grpc whose server does that';

export const GRPC_SERVICE_SUPPORT: SupportTable = {
  'proxy.config.core.v3.GrpcService': {
    otherwise: rejected(),
    fields: {
      envoy_grpc: supported(),
      google_grpc: supported('of management servers and stat sinks; elsewhere name a cluster in envoy_grpc'),
      timeout: supported(
        'of single calls; none where resources come from; unless said 10 s in stat sinks, 200 ms in filters',
      ),
      initial_metadata: supported(),
      credentials: rejected('an older place of google_grpc.channel_credentials and call_credentials'),
      retry_policy: warned('streams that end are opened again after waits of their own'),
    },
  },
  'proxy.config.core.v3.GrpcService.EnvoyGrpc': {
    otherwise: rejected(),
    fields: {
      cluster_name: supported('its hosts in turn; stat sinks speak cleartext'),
      authority: supported(),
      retry_policy: supported(
        'of single calls of filters and of what tells collectors; 5xx, gateway-error, connect-failure, reset and unavailable unless it names others',
      ),
      max_receive_message_length: supported('of management servers; other answers are short, or refused'),
      skip_envoy_headers: warned('stat sinks send none, filters send theirs'),
    },
  },
  'proxy.config.core.v3.RetryPolicy': {
    otherwise: rejected('questions of the proxy itself go to the hosts that their cluster picks'),
    fields: {
      retry_back_off: supported(),
      num_retries: supported('within the time of the question'),
      retry_on: supported('not of jwt_authn, which tries a fetch again whatever it has failed by'),
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc': {
    otherwise: rejected(OTHER_CREDENTIALS),
    fields: {
      target_uri: supported(),
      stat_prefix: supported('counted is under the names of who asks'),
      channel_credentials: supported('without any, cleartext'),
      call_credentials: supported('of management servers'),
      credentials_factory_name: supported('envoy.grpc_credentials.default'),
      per_stream_buffer_limit_bytes: warned('16 MiB wait at most'),
      channel_args: supported('of management servers: pings, longest message, authority, name of the certificate'),
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.ChannelCredentials': {
    otherwise: rejected(OTHER_CREDENTIALS),
    fields: {
      local_credentials: supportedWhole('cleartext'),
      ssl_credentials: supported(`of management servers; ${CLEARTEXT}`),
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.SslCredentials': {
    otherwise: rejected(),
    fields: {
      root_certs: supported('read at the start; without any those that the system trusts'),
      private_key: supported('read at the start'),
      cert_chain: supported('read at the start'),
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials': {
    otherwise: rejected(OTHER_CREDENTIALS),
    fields: { access_token: supported('over TLS only') },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.ChannelArgs': { otherwise: rejected(), fields: { args: supported() } },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.ChannelArgs.Value': {
    otherwise: rejected(),
    fields: { string_value: supported(), int_value: supported() },
  },
  'proxy.config.ratelimit.v3.RateLimitServiceConfig': {
    otherwise: rejected(),
    fields: {
      cluster_name: supported(),
      grpc_service: supported('by envoy_grpc; the timeout is that of the filter'),
      use_data_plane_proto: supported('nothing else is spoken'),
      transport_api_version: supported('AUTO is V3'),
    },
  },
};
