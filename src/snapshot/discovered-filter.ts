// HTTP, network and listener filters whose configurations are resources of their own: chains refer to them by id, and another configuration for the
// same id takes the place of the one before it under listeners that stay as they are.

import type { ConfigSourceSettings } from './config-source.ts';
import type { ListenerFilterSnapshot, OwnListenerFilterSettings, TerminalParts } from './filter-chain.ts';
import type { HttpFilterSettings, OwnTerminalSettings } from './listener.ts';
import type { NetworkFilterSettings, NetworkFilterSnapshot } from './network-filter.ts';

/** What an HTTP filter is configured as, whichever way that has come. */
export interface ConfiguredFilter {
  readonly filter: HttpFilterSettings;
  /** Full name of the message that routes may say to it; absent where they can only turn it off. */
  readonly routeType?: string;
}

/** The same of a network filter. */
export interface ConfiguredNetworkFilter {
  /** Null where it takes no part, as it is configured. */
  readonly filter: NetworkFilterSettings | null;
}

/** The same of one that ends its chain. */
export interface ConfiguredTerminal {
  readonly filter: OwnTerminalSettings;
}

/** The same of a listener filter. */
export interface ConfiguredListenerFilter {
  readonly filter: OwnListenerFilterSettings;
}

/** What a chain says of a filter that comes by discovery, under the name that the filter has in the chain. */
export interface DiscoveredFilter<Configured = ConfiguredFilter> {
  readonly source: ConfigSourceSettings;
  /** Full names of the messages that may configure it, one or more. */
  readonly types: readonly string[];
  /** Holds where discovery has none; absent where there is nothing then. */
  readonly byDefault?: Configured;
  /** The default holds from the beginning, and nobody waits for another. */
  readonly beginsWithDefault: boolean;
  /** Its listener takes what goes out from here. */
  readonly isOutbound: boolean;
}

/** Which of all that are published this is. */
export interface PublishedPlace {
  readonly id: number;
  /** Another one with each. */
  readonly edition: number;
}

export interface PublishedFilter extends PublishedPlace {
  /** Null for none: requests are answered with an error. */
  readonly configured: ConfiguredFilter | null;
  /** Cells of what it counts, by name. */
  readonly cells: Readonly<Record<string, number>>;
}

export type DiscoveredNetworkFilter = DiscoveredFilter<ConfiguredNetworkFilter>;

export interface PublishedNetworkFilter extends PublishedPlace {
  /** Null for none: connections are closed. Within it, null for a filter that takes no part. */
  readonly configured: { readonly filter: NetworkFilterSnapshot | null } | null;
}

export type DiscoveredTerminal = DiscoveredFilter<ConfiguredTerminal>;

export interface PublishedTerminal extends PublishedPlace {
  /** Null for none: connections are closed. */
  readonly configured: { readonly settings: OwnTerminalSettings; readonly parts: TerminalParts } | null;
}

export type DiscoveredListenerFilter = DiscoveredFilter<ConfiguredListenerFilter>;

export interface PublishedListenerFilter extends PublishedPlace {
  /** Null for none: connections are closed. */
  readonly configured: ListenerFilterSnapshot<OwnListenerFilterSettings> | null;
}

/** Of whatever kind: ids are of one row. */
export type PublishedExtension = PublishedFilter | PublishedNetworkFilter | PublishedTerminal | PublishedListenerFilter;
