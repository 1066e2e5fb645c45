// The network filters of a chain, by the messages that configure them.

import type {
  ConfiguredTerminal,
  NetworkFilterSettings,
  OwnTerminalSettings,
  TerminalFilterSettings,
} from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';
import { convertDiscoveredFilter, type FilterReading, NETWORK_FILTERS } from './discovered-filter.ts';
import { openExtension } from './extension.ts';
import { type ChainMember, checkTerminalFilter } from './filter-chain-rules.ts';
import { convertHttpConnectionManager } from './http-connection-manager.ts';
import type { HttpConnectionManager, NetworkFilter, TcpProxy } from './messages.ts';
import { convertTcpProxy } from './tcp-proxy.ts';

const TERMINALS = 'the HTTP connection manager, the TCP proxy or another terminal filter';

/** Those that are no extensions: each ends its chain. */
const OWN_FILTERS: Readonly<
  Record<string, (message: object, at: string, conversion: Conversion) => OwnTerminalSettings>
> = {
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager': (message, at, conversion) =>
    convertHttpConnectionManager(message as HttpConnectionManager, at, conversion),
  'proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy': (message, at, conversion) =>
    convertTcpProxy(message as TcpProxy, at, conversion),
};

/** Those that end their chain. */
export const TERMINAL_FILTERS: FilterReading<ConfiguredTerminal> = {
  refuse: (typeName, { networkFilters = {} }) => {
    if (Object.hasOwn(OWN_FILTERS, typeName)) return undefined;
    const manifest = Object.hasOwn(networkFilters, typeName) ? networkFilters[typeName] : undefined;
    if (manifest === undefined) return 'configures no network filter of this build that ends its chain';
    return manifest.isTerminal ? undefined : 'configures a filter that stands before another, and is the last here';
  },
  convert: (typeName, message, at, _name, conversion) => {
    const own = Object.hasOwn(OWN_FILTERS, typeName) ? OWN_FILTERS[typeName] : undefined;
    if (own !== undefined) return { filter: own(message, at, conversion) };
    const settings = conversion.networkFilters![typeName]!.convert(message, at, conversion);
    return settings === undefined || settings === 'off' ? undefined : { filter: { ...settings, kind: 'extension' } };
  },
};

export interface ConvertedFilters {
  readonly before: readonly NetworkFilterSettings[];
  /** Undefined where the chain does not end in a filter of this build, or in one with faults; faults say why. */
  readonly terminal: TerminalFilterSettings | undefined;
}

/** @param at path of the list. */
export function convertNetworkFilters(
  filters: readonly NetworkFilter[],
  at: string,
  conversion: Conversion,
): ConvertedFilters {
  const before: NetworkFilterSettings[] = [];
  const members: ChainMember[] = [];
  let terminal: TerminalFilterSettings | undefined;
  for (const [index, { name, typed_config, config_discovery }] of filters.entries()) {
    if (config_discovery !== null) {
      const place = `${at}[${index}].config_discovery`;
      const isTerminal = index === filters.length - 1;
      members.push({ name, isTerminal });
      if (isTerminal) {
        const last = convertDiscoveredFilter(name, config_discovery, place, conversion, TERMINAL_FILTERS);
        if (last !== undefined) terminal = { kind: 'discovered', name, discovered: last };
        continue;
      }
      const discovered = convertDiscoveredFilter(name, config_discovery, place, conversion, NETWORK_FILTERS);
      if (discovered !== undefined) before.push({ name, settings: null, discovered });
      continue;
    }
    const here = `${at}[${index}].typed_config`;
    const opened = openExtension(typed_config);
    const own = opened && OWN_FILTERS[opened.typeName];
    const manifest = opened && conversion.networkFilters?.[opened.typeName];
    members.push({ name, isTerminal: own === undefined ? manifest?.isTerminal : true });
    if (own !== undefined) terminal = own(opened!.message, here, conversion);
    const settings = manifest?.convert(opened!.message, here, conversion);
    if (settings === undefined || settings === 'off') continue;
    if (manifest!.isTerminal) terminal = { ...settings, kind: 'extension' };
    else before.push(settings);
  }
  checkTerminalFilter(members, at, TERMINALS, conversion.faults);
  return { before, terminal };
}
