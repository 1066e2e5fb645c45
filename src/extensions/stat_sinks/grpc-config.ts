// GrpcService messages → how main reaches the service.

import {
  type Conversion,
  durationMsOr,
  type GrpcService,
  rejected,
  type SupportTable,
  supported,
  supportedWhole,
  warned,
} from '../../config/index.ts';
import type { GrpcServiceSettings } from './grpc/service-channel.ts';

const CLEARTEXT = 'this build speaks cleartext to gRPC services';

export const GRPC_SUPPORT: SupportTable = {
  'proxy.config.core.v3.GrpcService': {
    otherwise: rejected(),
    fields: {
      envoy_grpc: supported(),
      google_grpc: supported(),
      timeout: supported('of single calls; 10 s where there is none'),
      initial_metadata: supported(),
      retry_policy: warned('the next flush tries again'),
    },
  },
  'proxy.config.core.v3.GrpcService.EnvoyGrpc': {
    otherwise: rejected(),
    fields: {
      cluster_name: supported('its hosts are spoken to in turn, in cleartext'),
      authority: supported(),
      retry_policy: warned('the next flush tries again'),
      max_receive_message_length: supportedWhole('answers are empty, or a few words'),
      skip_envoy_headers: supported('none are sent'),
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc': {
    otherwise: rejected(CLEARTEXT),
    fields: {
      target_uri: supported(),
      stat_prefix: supported('the sink counts under its own name'),
      channel_credentials: supported(),
      per_stream_buffer_limit_bytes: warned('16 MiB wait at most'),
      channel_args: warned(),
    },
  },
  'proxy.config.core.v3.GrpcService.GoogleGrpc.ChannelCredentials': {
    otherwise: rejected(CLEARTEXT),
    fields: { local_credentials: supportedWhole(CLEARTEXT) },
  },
};

const DEFAULT_TIMEOUT_MS = 10_000;
/** As HTTP/2 has names of fields; those of gRPC itself are the library's. */
const METADATA_KEY = /^(?!grpc-)[0-9a-z_.-]+$/;
const METADATA_VALUE = /^[\x20-\x7e]*$/;

/** @returns undefined where a fault says why. */
export function convertGrpcService(
  message: GrpcService | null,
  at: string,
  { clusters, faults }: Conversion,
): GrpcServiceSettings | undefined {
  // Without any, or without its target, the field rules have a fault.
  if (message === null) return undefined;
  const metadata = message.initial_metadata.map(({ key, value }, index) => {
    const name = key.toLowerCase();
    const place = `${at}.initial_metadata[${index}]`;
    if (!METADATA_KEY.test(name)) faults.error(`${place}.key`, `"${key}" is no name of metadata that can be set`);
    if (!METADATA_VALUE.test(value)) faults.error(`${place}.value`, 'has characters beyond printable ASCII');
    return { key: name, value };
  });
  const common = { metadata, timeoutMs: durationMsOr(message.timeout, 0) || DEFAULT_TIMEOUT_MS };
  const { envoy_grpc: inCluster, google_grpc: byUri } = message;
  if (inCluster !== null) {
    clusters.checkReference(inCluster.cluster_name, `${at}.envoy_grpc.cluster_name`, faults);
    clusters.checkCleartext(inCluster.cluster_name, `${at}.envoy_grpc.cluster_name`, faults);
    const authority = inCluster.authority || inCluster.cluster_name;
    return { ...common, target: { kind: 'cluster', cluster: inCluster.cluster_name, authority } };
  }
  return byUri === null ? undefined : { ...common, target: { kind: 'uri', uri: byUri.target_uri } };
}
