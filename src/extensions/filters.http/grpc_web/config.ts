// GrpcWeb message → settings of its filter, which has none.

import { type HttpFilterManifest, rejected } from '../../../config/index.ts';

export const GRPC_WEB: HttpFilterManifest = {
  support: { 'proxy.extensions.filters.http.grpc_web.v3.GrpcWeb': { otherwise: rejected(), fields: {} } },
  convert: () => ({ name: 'filters.http.grpc_web', settings: null }),
};
