// Settings of listeners and filter chains with the defaults that tests do not care about.

import type {
  FilterChainMatch,
  FilterChainSettings,
  ListenerSettings,
  ProxyProtocolSettings,
  TerminalFilterSettings,
  TlsInspectorSettings,
} from '../../src/snapshot/index.ts';

export const MATCHES_ALL: FilterChainMatch = {
  destinationPort: 0,
  prefixRanges: [],
  serverNames: [],
  transportProtocol: '',
  applicationProtocols: [],
  directSourcePrefixRanges: [],
  sourceType: 'ANY',
  sourcePrefixRanges: [],
  sourcePorts: [],
};

export const PROXY_PROTOCOL: ProxyProtocolSettings = {
  kind: 'proxy-protocol',
  isOptional: false,
  acceptsV1: true,
  acceptsV2: true,
  statPrefix: '',
  rules: [],
};

export const TLS_INSPECTOR: TlsInspectorSettings = {
  kind: 'tls-inspector',
  maxClientHelloBytes: 16 * 1024,
  refusesMalformed: false,
  makesJa3: false,
  makesJa4: false,
};

export function filterChain(
  filter: TerminalFilterSettings,
  fields: Partial<FilterChainSettings> = {},
): FilterChainSettings {
  return { name: '', match: MATCHES_ALL, networkFilters: [], filter, ...fields };
}

export function listenerSettings(fields: Partial<ListenerSettings>): ListenerSettings {
  return {
    name: 'test',
    accessLogs: [],
    addresses: [{ kind: 'ip', ip: '127.0.0.1', port: 0 }],
    bindsToPort: true,
    handsOver: false,
    statPrefix: '',
    trafficDirection: 'UNSPECIFIED',
    drainType: 'default',
    bufferLimitBytes: 1024 * 1024,
    backlog: 128,
    reusePort: true,
    socketOptions: { noDelay: true, keepalive: undefined, typeOfService: 0 },
    listenerFilters: [],
    listenerFiltersTimeoutMs: 15_000,
    continueOnListenerFiltersTimeout: false,
    ignoresGlobalLimit: false,
    bypassesOverload: false,
    filterChains: [],
    defaultFilterChain: null,
    ...fields,
  };
}
