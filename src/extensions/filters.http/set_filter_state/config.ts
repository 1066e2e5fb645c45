// set_filter_state: Config message → what is said of each request.

import {
  type Conversion,
  type HttpFilterManifest,
  type MessageTypes,
  REQUEST_STATE_KEYS,
  rejected,
  supported,
} from '../../../config/index.ts';
import { convertFilterState, FILTER_STATE_SUPPORT } from '../../filter-state/config.ts';
import type { SetFilterStateSettings } from './settings.ts';

const CONFIG = 'proxy.extensions.filters.http.set_filter_state.v3.Config';

export const SET_FILTER_STATE: HttpFilterManifest = {
  support: {
    ...FILTER_STATE_SUPPORT,
    [CONFIG]: { otherwise: rejected(), fields: { on_request_headers: supported(), clear_route_cache: supported() } },
  },
  convert: (message, at, conversion) => ({
    name: 'filters.http.set_filter_state',
    settings: convertSettings(message, at, conversion),
  }),
  ofRoutes: { type: CONFIG, convert: convertSettings },
};

function convertSettings(message: object, at: string, conversion: Conversion): SetFilterStateSettings {
  const { on_request_headers: values, clear_route_cache: choosesRouteAgain } = message as MessageTypes[typeof CONFIG];
  const settings = convertFilterState(values, REQUEST_STATE_KEYS, `${at}.on_request_headers`, conversion);
  return { values: settings, choosesRouteAgain };
}
