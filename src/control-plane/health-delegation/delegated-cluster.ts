// Hosts that are checked for somebody else: they get no traffic for it, and no worker knows of them. A host that is asked for again
// is the one that it was, with what its checks have found. Main thread. Owns the checks.

import { formatAddress } from '../../base/address.ts';
import type { FoundHealth, FoundLocality } from '../../config/index.ts';
import type { ClusterSettings, HealthCheckSettings, HostSettings } from '../../snapshot/index.ts';
import { HealthFlag } from '../../wasm/shared-memory.ts';
import {
  type CheckedHost,
  HealthChecker,
  type HealthCheckTools,
} from '../cluster-manager/health-check/health-checker.ts';
import type { ProbeOrigin, ProbeTarget } from '../cluster-manager/health-check/probe.ts';
import { probeTarget } from '../cluster-manager/health-check/probe-target.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import { settingsText } from '../same-settings.ts';

const {
  failedActiveHealthCheck: FAILED,
  activeHealthCheckTimeout: TIMED_OUT,
  degradedActiveHealthCheck: DEGRADED,
} = HealthFlag;

export interface DelegationTools {
  readonly checking: HealthCheckTools;
  readonly holdings: HoldingsSource;
  readonly originOf: (settings: ClusterSettings) => ProbeOrigin;
}

class DelegatedHost implements CheckedHost {
  #settings: HostSettings;
  /** It serves nobody before it has passed. */
  #healthFlags: number = FAILED;

  constructor(settings: HostSettings) {
    this.#settings = settings;
  }

  get snapshot(): HostSettings {
    return this.#settings;
  }

  get address(): HostSettings['address'] {
    return this.#settings.address;
  }

  get locality(): HostSettings['locality'] {
    return this.#settings.locality;
  }

  get isCheckDisabled(): boolean {
    return this.#settings.check?.isDisabled ?? false;
  }

  get healthFlags(): number {
    return this.#healthFlags;
  }

  get health(): FoundHealth {
    const flags = this.#healthFlags;
    if ((flags & FAILED) !== 0) return (flags & TIMED_OUT) === 0 ? 'unhealthy' : 'timeout';
    return (flags & DEGRADED) === 0 ? 'healthy' : 'degraded';
  }

  setHealthFlags(flags: number, isSet: boolean): void {
    this.#healthFlags = isSet ? this.#healthFlags | flags : this.#healthFlags & ~flags;
  }

  target(settings: HealthCheckSettings): ProbeTarget {
    return probeTarget(this.#settings, settings);
  }

  noteCheck(): void {}
}

export class DelegatedCluster {
  readonly name: string;
  readonly #tools: DelegationTools;
  /** By all that makes a host another one. */
  #hosts = new Map<string, DelegatedHost>();
  #checker: HealthChecker<DelegatedHost> | undefined;
  #holdings: Holdings | undefined;
  /** Of all that the checks go by, but for the hosts. */
  #text: string | undefined;

  constructor(name: string, tools: DelegationTools) {
    this.name = name;
    this.#tools = tools;
  }

  /** @throws WeirError, as ManagedCluster does; all is as before then. */
  update(settings: ClusterSettings, check: HealthCheckSettings): void {
    const { hosts, ...others } = settings;
    const text = settingsText(others);
    if (text !== this.#text) {
      const former = { checker: this.#checker, holdings: this.#holdings };
      this.#begin(settings, check);
      former.checker?.stop();
      former.holdings?.close();
      this.#text = text;
    }
    const known = this.#hosts;
    const wanted = hosts.map((host) => [keyOf(host), host] as const);
    this.#hosts = new Map(wanted.map(([key, host]) => [key, known.get(key) ?? new DelegatedHost(host)]));
    this.#checker!.setHosts([...this.#hosts.values()]);
  }

  /** Those of which something can be said. */
  localities(): readonly FoundLocality[] {
    const found = new Map<string, FoundLocality & { readonly hosts: FoundLocality['hosts'][number][] }>();
    for (const { address, locality, health, isCheckDisabled } of this.#hosts.values()) {
      if (isCheckDisabled) continue;
      const key = JSON.stringify([locality.region, locality.zone, locality.subZone]);
      const group = found.get(key) ?? { locality, hosts: [] };
      found.set(key, group);
      group.hosts.push({ address, health });
    }
    return [...found.values()];
  }

  /** Nothing is checked any more. Idempotent. */
  close(): void {
    this.#checker?.stop();
    this.#holdings?.close();
    this.#checker = undefined;
    this.#holdings = undefined;
  }

  #begin(settings: ClusterSettings, check: HealthCheckSettings): void {
    const { checking, holdings: source, originOf } = this.#tools;
    const holdings = new Holdings(source);
    try {
      const { name, statName, tls, transportSocketMatches } = settings;
      const cluster = {
        name,
        statName,
        ...(tls && { tls }),
        ...(transportSocketMatches && { transportSocketMatches }),
        origin: originOf(settings),
        // Somebody else's: it is checked as often as one that has.
        hasTraffic: () => true,
        onPassed: () => {},
        onHealthChange: () => {},
      };
      holdings.hold(checking.events.hold(check.eventLogPaths));
      this.#checker = new HealthChecker<DelegatedHost>(check, cluster, { ...checking, stats: holdings });
      this.#holdings = holdings;
    } catch (error) {
      holdings.close();
      throw error;
    }
    this.#checker.start();
  }
}

function keyOf({ address, locality, hostname, check, metadata }: HostSettings): string {
  return JSON.stringify([formatAddress(address), locality, hostname, check ?? null, metadata ?? null]);
}
