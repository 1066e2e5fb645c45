// GrpcWeb message → settings of its filter, which has none.

import type { HttpFilterSettings } from '../../../snapshot/index.ts';

export function convertGrpcWebFilter(): HttpFilterSettings {
  return { name: 'filters.http.grpc_web', settings: null };
}
