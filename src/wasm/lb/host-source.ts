// Where a request's host comes from, as plain data: lists of hosts with a balancer each, and what chooses among lists.
// Main works a source out and writes it to shared memory; each worker reads it from there. Hosts are their indexes in
// the cluster.

import type { HashPlan } from './hash-table.ts';
import type { PickPlan, SchedulePlan } from './host-picker.ts';

export type HostSource = NoHosts | HostList | BoundedHosts | HostShares | HostTurns | HostZones | HostSubsets;

export interface NoHosts {
  readonly kind: 'none';
}

export const NO_HOSTS: NoHosts = { kind: 'none' };

/** Hosts of which a balancer picks one. */
export interface HostList {
  readonly kind: 'list';
  readonly hosts: ArrayLike<number>;
  readonly plan: PickPlan | HashPlan;
  /** Names the list from one update to the next: who takes turns goes on where it stood. */
  readonly slot: number;
}

/** A table of hashes whose hosts take no more than a bound: what is too much for one goes to others. */
export interface BoundedHosts {
  readonly kind: 'bounded';
  readonly table: HostList;
  /** How much of its share of the requests in flight a host may have: 100 for no more than that. */
  readonly percent: number;
  /** What each host of the table has of 1. */
  readonly shares: Float64Array;
}

/** Sources that take turns by their weights, evenly interleaved. */
export interface HostTurns {
  readonly kind: 'turns';
  /** Over the sources in their order. */
  readonly schedule: SchedulePlan;
  readonly sources: readonly HostSource[];
}

/** Sources by locality, of which this proxy's own goes first. */
export interface HostZones {
  readonly kind: 'zones';
  /** All requests go to the first. */
  readonly isDirect: boolean;
  /** Too little is known of the proxies that send requests. */
  readonly isPanic: boolean;
  /** Requests have no host then; otherwise any. */
  readonly failsInPanic: boolean;
  /** Of 10,000 requests, how many go to the first before the others are considered. */
  readonly localShare: number;
  /** Wherever they are, for requests that do not go by locality. */
  readonly any: HostSource;
  readonly zones: readonly ZoneShare[];
}

export interface ZoneShare {
  /** A request that draws a number below this goes to the first such share; the last says from how many is drawn. */
  readonly upTo: number;
  readonly source: HostSource;
}

/** Sources that each take a part of the requests. */
export interface HostShares {
  readonly kind: 'shares';
  readonly shares: readonly HostShare[];
}

export interface HostShare {
  /**
   * A request that draws 1 to 100 goes to the first share that reaches so far; the last one reaches 100. One that
   * reaches no further than the share before it serves requests that may not use others.
   */
  readonly upTo: number;
  readonly source: HostSource;
  /** Too few hosts of its priority are available, so that any of them is picked. */
  readonly isPanic: boolean;
  readonly priority: number;
  /** Percent of all requests that these hosts could take. */
  readonly availability: number;
}

/** Sources by what their hosts' metadata says. */
export interface HostSubsets {
  readonly kind: 'subsets';
  /** All hosts, and those of the default subset, where requests may need them. */
  readonly any: HostSource;
  readonly defaultSubset: HostSource;
  /** Of subsets with hosts (base/subset-key.ts). */
  readonly names: readonly string[];
  /** By the index of its name. */
  sourceOf(index: number): HostSource;
}
