// FilterConfig message → settings of the filter for the stats of gRPC.

import { type GrpcStatsFilterMessage, valueOr } from '../../../config/index.ts';
import type { HttpFilterSettings } from '../../../snapshot/index.ts';
import type { GrpcStatsSettings } from './settings.ts';

export function convertGrpcStatsFilter(message: object): HttpFilterSettings {
  const filter = message as GrpcStatsFilterMessage;
  const { services = [] } = filter.individual_method_stats_allowlist ?? {};
  const settings: GrpcStatsSettings = {
    countsAllMethods: valueOr(filter.stats_for_all_methods, false),
    methods: services.flatMap(({ name, method_names }) => method_names.map((method) => `${name}.${method}`)),
    countsTimes: filter.enable_upstream_stats,
  };
  return { name: 'filters.http.grpc_stats', settings };
}
