// ConnectionLimit message → settings of the connection limit filter.

import {
  type ConnectionLimitMessage,
  durationMsOr,
  type NetworkFilterManifest,
  rejected,
  runtimeFlagOf,
  supported,
  toNumber,
} from '../../../config/index.ts';
import type { ConnectionLimitSettings } from './settings.ts';

export const CONNECTION_LIMIT: NetworkFilterManifest = {
  isTerminal: false,
  support: {
    'proxy.extensions.filters.network.connection_limit.v3.ConnectionLimit': {
      otherwise: rejected(),
      fields: {
        stat_prefix: supported(),
        max_connections: supported(),
        delay: supported(),
        runtime_enabled: supported(),
      },
    },
  },
  convert(message, at, { faults }) {
    const { stat_prefix, max_connections, delay, runtime_enabled } = message as ConnectionLimitMessage;
    if (max_connections === null) {
      faults.error(`${at}.max_connections`, 'is required');
      return undefined;
    }
    const enabled = runtimeFlagOf(runtime_enabled, true);
    if (!enabled.default && enabled.key === '') return 'off';
    const settings: ConnectionLimitSettings = {
      maxConnections: toNumber(max_connections.value),
      delayMs: durationMsOr(delay, 0),
      enabled,
    };
    return {
      name: 'filters.network.connection_limit',
      settings,
      statScope: `connection_limit.${stat_prefix}.`,
      counters: ['limited_connections'],
      gauges: ['active_connections'],
      hasSharedCount: true,
    };
  },
};
