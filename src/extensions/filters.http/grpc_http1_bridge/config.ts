// Config message → settings of the filter that bridges HTTP/1.1 to gRPC.

import { type GrpcBridgeFilterMessage, type HttpFilterManifest, rejected, supported } from '../../../config/index.ts';
import type { GrpcBridgeSettings } from './settings.ts';

export const GRPC_BRIDGE: HttpFilterManifest = {
  support: {
    'proxy.extensions.filters.http.grpc_http1_bridge.v3.Config': {
      otherwise: rejected(),
      fields: { upgrade_protobuf_to_grpc: supported(), ignore_query_parameters: supported() },
    },
  },
  convert(message) {
    const filter = message as GrpcBridgeFilterMessage;
    const settings: GrpcBridgeSettings = {
      upgradesProtobuf: filter.upgrade_protobuf_to_grpc,
      dropsQuery: filter.ignore_query_parameters,
    };
    return { name: 'filters.http.grpc_http1_bridge', settings };
  },
};
