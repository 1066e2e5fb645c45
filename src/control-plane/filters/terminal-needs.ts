// What a terminal filter of a chain waits for: its route tables, scopes and filters, where they come by discovery, and itself where it does.
// Main thread.

import type { OwnTerminalSettings, TerminalFilterSettings } from '../../snapshot/index.ts';
import type { ResourceLease } from '../discovery/resource-lease.ts';
import { httpFiltersOf, type TerminalSources } from './terminal-parts.ts';

/** @param listenerPrefix of the listener's stats, with its dot. @returns what the caller releases. */
export function terminalNeeds(
  filter: TerminalFilterSettings,
  listenerPrefix: string,
  sources: TerminalSources,
): readonly ResourceLease[] {
  if (filter.kind !== 'discovered') return ownTerminalNeeds(filter, sources);
  const { name, discovered } = filter;
  const { byDefault } = discovered;
  const ofDefault = byDefault === undefined ? [] : ownTerminalNeeds(byDefault.filter, sources);
  return [sources.filters.leaseTerminal(name, discovered, listenerPrefix), ...ofDefault];
}

/** As `terminalNeeds`, of what is known. */
export function ownTerminalNeeds(
  filter: OwnTerminalSettings,
  { routes, filters }: TerminalSources,
): readonly ResourceLease[] {
  if (filter.kind !== 'http-connection-manager') return [];
  const { discoveredRoutes, scopedRoutes, statPrefix } = filter;
  const needs: ResourceLease[] = [];
  if (scopedRoutes !== undefined) needs.push(routes.leaseScopes(scopedRoutes, statPrefix));
  else if (discoveredRoutes !== undefined) needs.push(routes.lease(discoveredRoutes, statPrefix));
  for (const { name, configName = name, discovered } of httpFiltersOf(filter))
    if (discovered !== undefined) needs.push(filters.lease(configName, discovered, statPrefix));
  return needs;
}
