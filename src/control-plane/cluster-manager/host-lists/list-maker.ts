// Makes the host lists of one cluster with what beside its hosts decides at that moment: values of the runtime, the members of
// this process's own cluster, and how far hosts have come that have joined lately. Main thread.

import type { Clock } from '../../../base/clock.ts';
import type { RuntimeValues } from '../../../base/runtime.ts';
import { PANIC_THRESHOLD, ZONE_FORCED_FROM, ZONE_MIN_CLUSTER_SIZE } from '../../../base/runtime-values.ts';
import type { ClusterSettings, Locality, SlowStartSettings, ZoneRoutingSettings } from '../../../snapshot/index.ts';
import type { LbTables } from '../../../wasm/lb.ts';
import { HealthMask } from '../../../wasm/shared-memory.ts';
import { HashKeys } from './hash-keys.ts';
import { type BalancingSettings, HostLists } from './host-lists.ts';
import { isBelow } from './priority-load.ts';
import { hostsByPriority, type ListedHost, priorityState } from './priority-members.ts';
import { type StartShare, startShare } from './slow-start.ts';
import type { LocalZones } from './zone-routing.ts';

const { unhealthy: UNHEALTHY, degraded: DEGRADED } = HealthMask;

/** Percent. */
const ALL = 100;

/** Of the cluster that this process is a member of. */
export interface LocalMembers {
  readonly locality: Locality;
  /** Undefined until the cluster is there. */
  readonly members: (() => readonly ListedHost[]) | undefined;
}

export interface ListMakerDependencies {
  readonly tables: LbTables;
  readonly runtime: RuntimeValues;
  readonly clock: Clock;
  readonly local: LocalMembers;
}

export type ListSettings = BalancingSettings & Pick<ClusterSettings, 'slowStart'>;

/** A host that is picked from since a moment of the monotonic clock. */
export interface StartedHost extends ListedHost {
  readonly startedMs: number;
}

type RuntimeSettings = Pick<BalancingSettings, 'healthyPanicThreshold' | 'zoneRouting' | 'leastRequest'>;

export class ListMaker {
  readonly #deps: ListMakerDependencies;
  readonly #keys: HashKeys;
  /** Settings that the runtime may override, as they were when lists were made last. */
  #madeWith = '';

  constructor(deps: ListMakerDependencies, { hashing }: Pick<ClusterSettings, 'hashing'>) {
    this.#deps = deps;
    this.#keys = new HashKeys(hashing.usesHostname);
  }

  /** @throws as HostLists. */
  make(settings: ListSettings, hosts: readonly StartedHost[]): HostLists {
    const runtimeSettings = this.#runtimeSettings(settings);
    const lists = new HostLists(this.#deps.tables, { ...settings, ...runtimeSettings }, hosts, {
      shareOf: this.#startShares(settings.slowStart, hosts),
      localZones: this.#localZones(runtimeSettings.healthyPanicThreshold),
      keys: this.#keys,
    });
    this.#madeWith = JSON.stringify(runtimeSettings);
    return lists;
  }

  /** The runtime has other values than those that lists were made with last. */
  isOutdated(settings: ListSettings): boolean {
    return JSON.stringify(this.#runtimeSettings(settings)) !== this.#madeWith;
  }

  /** In percent, as the runtime has it now. */
  panicThreshold({ healthyPanicThreshold }: Pick<ClusterSettings, 'healthyPanicThreshold'>): number {
    return Math.min(ALL, this.#deps.runtime.integer(PANIC_THRESHOLD) ?? healthyPanicThreshold);
  }

  #runtimeSettings(settings: ListSettings): RuntimeSettings {
    const { runtime } = this.#deps;
    const { activeRequestBias: bias, activeRequestBiasKey } = settings.leastRequest;
    // Who has no bias has no key either.
    const activeRequestBias = runtime.number(activeRequestBiasKey) ?? bias;
    return {
      healthyPanicThreshold: this.panicThreshold(settings),
      zoneRouting: this.#zoneRouting(settings.zoneRouting),
      leastRequest: { ...settings.leastRequest, activeRequestBias },
    };
  }

  #zoneRouting(settings: ZoneRoutingSettings | null): ZoneRoutingSettings | null {
    if (settings === null) return null;
    const { runtime } = this.#deps;
    const { forcedFrom, minClusterSize } = settings;
    return {
      ...settings,
      minClusterSize: runtime.integer(ZONE_MIN_CLUSTER_SIZE) ?? minClusterSize,
      forcedFrom: forcedFrom === null ? null : (runtime.integer(ZONE_FORCED_FROM) ?? forcedFrom),
    };
  }

  #localZones(healthyPanicThreshold: number): LocalZones | null {
    const { locality, members } = this.#deps.local;
    if (members === undefined) return null;
    const hosts = members();
    const [first] = hostsByPriority(hosts, hosts.keys());
    return { locality, hosts, isPanic: isBelow(priorityState(hosts, first!, false).counts, healthyPanicThreshold) };
  }

  #startShares(settings: SlowStartSettings | null, hosts: readonly StartedHost[]): StartShare | null {
    if (settings === null) return null;
    const { runtime, clock } = this.#deps;
    const { key, default: byDefault } = settings.aggression;
    const aggression = runtime.derived((values) => {
      const value = values.number(key);
      return value !== undefined && value > 0 ? value : byDefault;
    });
    return (index) => {
      const host = hosts[index]!;
      // Degraded hosts and those in panic are not spared.
      if ((host.healthFlags & (UNHEALTHY | DEGRADED)) !== 0) return 1;
      return startShare(settings, aggression.value, clock.monotonicMs() - host.startedMs);
    };
  }
}
