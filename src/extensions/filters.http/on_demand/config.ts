// OnDemand message → settings of the on_demand filter.

import { type HttpFilterManifest, rejected } from '../../../config/index.ts';

export const ON_DEMAND: HttpFilterManifest = {
  support: {
    'proxy.extensions.filters.http.on_demand.v3.OnDemand': {
      otherwise: rejected(),
      fields: { odcds: rejected('clusters come by cds_config') },
    },
  },
  convert: () => ({ name: 'filters.http.on_demand', settings: {} }),
};
