// FilterConfig message → settings of the filter for the stats of gRPC.

import {
  type GrpcStatsFilterMessage,
  type HttpFilterManifest,
  rejected,
  supported,
  supportedWhole,
  valueOr,
  warned,
} from '../../../config/index.ts';
import type { HttpFilterSettings } from '../../../snapshot/index.ts';
import type { GrpcStatsSettings } from './settings.ts';

export const GRPC_STATS: HttpFilterManifest = {
  support: {
    'proxy.extensions.filters.http.grpc_stats.v3.FilterConfig': {
      otherwise: rejected(),
      fields: {
        emit_filter_state: warned('nothing reads what it would put there; the counts stand in stats'),
        individual_method_stats_allowlist: supportedWhole(),
        stats_for_all_methods: supported('of at most 1,000 methods of a cluster; the others are counted together'),
        enable_upstream_stats: supported('from the end of the request to that of the response'),
      },
    },
  },
  convert: convertGrpcStatsFilter,
};

function convertGrpcStatsFilter(message: object): HttpFilterSettings {
  const filter = message as GrpcStatsFilterMessage;
  const { services = [] } = filter.individual_method_stats_allowlist ?? {};
  const settings: GrpcStatsSettings = {
    countsAllMethods: valueOr(filter.stats_for_all_methods, false),
    methods: services.flatMap(({ name, method_names }) => method_names.map((method) => `${name}.${method}`)),
    countsTimes: filter.enable_upstream_stats,
  };
  return { name: 'filters.http.grpc_stats', settings };
}
