// set_filter_state: Config message → what is said of each connection.

import {
  CONNECTION_STATE_KEYS,
  type MessageTypes,
  type NetworkFilterManifest,
  rejected,
  supported,
} from '../../../config/index.ts';
import { convertFilterState, FILTER_STATE_SUPPORT } from '../../filter-state/config.ts';

const CONFIG = 'proxy.extensions.filters.network.set_filter_state.v3.Config';

export const NETWORK_SET_FILTER_STATE: NetworkFilterManifest = {
  isTerminal: false,
  support: {
    ...FILTER_STATE_SUPPORT,
    [CONFIG]: { otherwise: rejected(), fields: { on_new_connection: supported() } },
  },
  convert(message, at, conversion) {
    const { on_new_connection: values } = message as MessageTypes[typeof CONFIG];
    const settings = convertFilterState(values, CONNECTION_STATE_KEYS, `${at}.on_new_connection`, conversion);
    return { name: 'filters.network.set_filter_state', settings };
  },
};
