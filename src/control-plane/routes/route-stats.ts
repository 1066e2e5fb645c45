// The stats that a route table asks for: of virtual clusters and routes, and of filters whom its routes have count. Main thread.

import type {
  FiltersOfRoute,
  RouteAction,
  RouteFilterSettings,
  RouteTableSnapshot,
  VirtualHostSnapshot,
} from '../../snapshot/index.ts';
import { OTHER_VIRTUAL_CLUSTER, ROUTE_STATS, routeScope, type Scope, virtualClusterScope } from '../../stats/index.ts';
import type { Holdings } from '../holdings.ts';

/** First cells of ROUTE_STATS, by scope. */
export function allocateRouteStats(
  { virtualHosts }: RouteTableSnapshot,
  holdings: Holdings,
): Readonly<Record<string, number>> {
  const scopes = new Set(virtualHosts.flatMap(scopesOfHost));
  return Object.fromEntries([...scopes].map((scope) => [scope, holdings.scope(scope).allocate(ROUTE_STATS).cell]));
}

function scopesOfHost({ name, virtualClusters = [], routes }: VirtualHostSnapshot): readonly string[] {
  const named = virtualClusters.map((each) => each.name);
  const names = named.length === 0 ? [] : [...named, OTHER_VIRTUAL_CLUSTER];
  const prefixes = routes.flatMap(({ statPrefix }) => statPrefix ?? []);
  return [
    ...names.map((each) => virtualClusterScope(name, each)),
    ...prefixes.map((prefix) => routeScope(name, prefix)),
  ];
}

/** Cells by whole names. */
export function allocateFilterCells(table: RouteTableSnapshot, holdings: Holdings): Readonly<Record<string, number>> {
  const said = saidByRoutes(table);
  const counters = new Set(said.flatMap(({ wholeCounters = [] }) => wholeCounters));
  const gauges = new Set(said.flatMap(({ wholeGauges = [] }) => wholeGauges));
  const times = new Set(said.flatMap(({ wholeTimes = [] }) => wholeTimes));
  return Object.fromEntries([
    ...[...counters].map((name) => [name, makeCounter(name, holdings)]),
    ...[...gauges].map((name) => [name, makeStat(name, holdings, (scope, last) => scope.gauge(last).cell)]),
    ...[...times].map((name) => [name, makeStat(name, holdings, (scope, last) => scope.time(last))]),
  ]);
}

/** What routes say to filters. Many routes share what they say. */
export function saidByRoutes({ virtualHosts }: RouteTableSnapshot): readonly RouteFilterSettings[] {
  const routes = virtualHosts.flatMap((host) => host.routes);
  const said = new Set(routes.flatMap(({ filters, action }) => [filters ?? [], filtersOfClusters(action)].flat()));
  return [...said].flatMap((levels) => [...levels.values()].flat());
}

function filtersOfClusters(action: RouteAction): readonly FiltersOfRoute[] {
  const entries = action.kind === 'cluster' ? (action.weightedClusters?.entries ?? []) : [];
  return entries.flatMap(({ filters }) => filters ?? []);
}

/** @param name whole. */
export function makeCounter(name: string, holdings: Holdings): number {
  return makeStat(name, holdings, (scope, last) => scope.counter(last).cell);
}

/** @param make given the scope and the last part of the name, the cell. */
export function makeStat(name: string, holdings: Holdings, make: (scope: Scope, last: string) => number): number {
  const end = name.lastIndexOf('.') + 1;
  return make(holdings.scope(name.slice(0, end)), name.slice(end));
}
