// Config message → settings of the filter that bridges HTTP/1.1 to gRPC.

import type { GrpcBridgeFilterMessage } from '../../../config/index.ts';
import type { HttpFilterSettings } from '../../../snapshot/index.ts';
import type { GrpcBridgeSettings } from './settings.ts';

export function convertGrpcBridgeFilter(message: object): HttpFilterSettings {
  const filter = message as GrpcBridgeFilterMessage;
  const settings: GrpcBridgeSettings = {
    upgradesProtobuf: filter.upgrade_protobuf_to_grpc,
    dropsQuery: filter.ignore_query_parameters,
  };
  return { name: 'filters.http.grpc_http1_bridge', settings };
}
