// OnDemand and PerRouteConfig messages → settings of the on_demand filter.

import {
  type Conversion,
  convertClusterDemand,
  durationMsOr,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  supported,
} from '../../../config/index.ts';
import type { OnDemandSettings } from './settings.ts';

const PACKAGE = 'proxy.extensions.filters.http.on_demand.v3';
const ON_DEMAND_MESSAGE = `${PACKAGE}.OnDemand` as const;
const PER_ROUTE = `${PACKAGE}.PerRouteConfig` as const;
const CLUSTERS = `${PACKAGE}.OnDemandCds` as const;
const DEFAULT_TIMEOUT_MS = 5000;

type OnDemandMessage = MessageTypes[typeof ON_DEMAND_MESSAGE] | MessageTypes[typeof PER_ROUTE];

export const ON_DEMAND: HttpFilterManifest = {
  support: {
    [ON_DEMAND_MESSAGE]: { otherwise: rejected(), fields: { odcds: supported() } },
    [PER_ROUTE]: {
      otherwise: rejected(),
      fields: { odcds: supported('without it no clusters are asked for on this route') },
    },
    [CLUSTERS]: {
      otherwise: rejected(),
      fields: {
        source: supported('by DELTA_GRPC'),
        resources_locator: rejected('clusters are asked for by name, not by locator'),
        timeout: supported('5 s when absent'),
      },
    },
  },
  convert: (message, at, conversion) => ({
    name: 'filters.http.on_demand',
    settings: settingsOf(message, at, conversion),
  }),
  ofRoutes: { type: PER_ROUTE, convert: settingsOf },
};

function settingsOf(message: object, at: string, conversion: Conversion): OnDemandSettings {
  const { odcds } = message as OnDemandMessage;
  // Without a source a field rule has a fault.
  if (odcds === null || odcds.source === null) return { clusters: null };
  const timeoutMs = durationMsOr(odcds.timeout, DEFAULT_TIMEOUT_MS);
  return { clusters: convertClusterDemand(odcds.source, `${at}.odcds.source`, timeoutMs, conversion) };
}
