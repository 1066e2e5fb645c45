// The network filters of this build, by the message that configures them.

import type { ConnectionLimitSettings, NetworkFilterSettings } from '../../snapshot/index.ts';
import { convertConnectionLimit } from './connection-limit.ts';
import type { Conversion } from './conversion.ts';
import { convertHttpConnectionManager } from './http-connection-manager.ts';
import type { ConnectionLimit, HttpConnectionManager, TcpProxy } from './messages.ts';
import { convertTcpProxy } from './tcp-proxy.ts';

/** A connection limit lets connections through to the filters behind it; every other filter is terminal. */
export type ConvertedFilter =
  | NetworkFilterSettings
  | {
      readonly kind: 'connection-limit';
      /** Empty when the filter is switched off. */
      readonly limits: readonly ConnectionLimitSettings[];
    };

type ConvertFilter = (message: object, at: string, conversion: Conversion) => ConvertedFilter;

export const NETWORK_FILTERS: Readonly<Record<string, ConvertFilter>> = {
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager': (message, at, conversion) =>
    convertHttpConnectionManager(message as HttpConnectionManager, at, conversion),
  'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy': (message, at, conversion) =>
    convertTcpProxy(message as TcpProxy, at, conversion),
  'proxy.extensions.filters.network.connection_limit.v3.ConnectionLimit': (message, at, { faults }) => ({
    kind: 'connection-limit',
    limits: convertConnectionLimit(message as ConnectionLimit, at, faults),
  }),
};
