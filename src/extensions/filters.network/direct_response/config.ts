// Config message → settings of the direct response filter.

import {
  type MessageTypes,
  type NetworkFilterManifest,
  readDataSource,
  rejected,
  supported,
} from '../../../config/index.ts';
import type { DirectResponseSettings } from './settings.ts';

const CONFIG = 'proxy.extensions.filters.network.direct_response.v3.Config';

export const DIRECT_RESPONSE: NetworkFilterManifest = {
  isTerminal: true,
  support: { [CONFIG]: { otherwise: rejected(), fields: { response: supported('a file is read at the start') } } },
  convert(message, at, conversion) {
    const { response } = message as MessageTypes[typeof CONFIG];
    const settings: DirectResponseSettings = { response: readDataSource(response, `${at}.response`, conversion) };
    return { name: 'filters.network.direct_response', settings };
  },
};
