// Hosts that are checked for somebody else: they get no traffic for it, and no worker knows of them. A host that is asked for again
// is the one that it was, with what its checks have found. Main thread. Owns the checks.

import { formatAddress } from '../../base/address.ts';
import type { FoundHealth, FoundLocality, OrderedCheck } from '../../config/index.ts';
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

class DelegatedHost {
  readonly settings: HostSettings;
  /** By the place of the check. */
  #findings: CheckFinding[] = [];

  constructor(settings: HostSettings) {
    this.settings = settings;
  }

  /** As so many checks find it; those that have been there before go on with what they have found. */
  findings(count: number): readonly CheckFinding[] {
    this.#findings = Array.from({ length: count }, (_, at) => this.#findings[at] ?? new CheckFinding(this.settings));
    return this.#findings;
  }

  /** That of all checks: it serves where it passes each of them. */
  get health(): FoundHealth {
    const failed = this.#findings.filter(({ healthFlags }) => (healthFlags & FAILED) !== 0);
    if (failed.length > 0) {
      return failed.every(({ healthFlags }) => (healthFlags & TIMED_OUT) !== 0) ? 'timeout' : 'unhealthy';
    }
    return this.#findings.some(({ healthFlags }) => (healthFlags & DEGRADED) !== 0) ? 'degraded' : 'healthy';
  }
}

/** A host as one check of its cluster finds it. */
class CheckFinding implements CheckedHost {
  readonly #settings: HostSettings;
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
    return isCheckDisabled(this.#settings);
  }

  get healthFlags(): number {
    return this.#healthFlags;
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
  /** In the order of the checks. */
  #checkers: readonly HealthChecker<CheckFinding>[] = [];
  #holdings: Holdings | undefined;
  /** Of all that the checks go by, but for the hosts. */
  #text: string | undefined;

  constructor(name: string, tools: DelegationTools) {
    this.name = name;
    this.#tools = tools;
  }

  /** @throws WeirError, as ManagedCluster does; all is as before then. */
  update(settings: ClusterSettings, checks: readonly OrderedCheck[]): void {
    const { hosts, ...others } = settings;
    const text = settingsText([others, checks]);
    if (text !== this.#text) {
      const former = { checkers: this.#checkers, holdings: this.#holdings };
      this.#begin(settings, checks);
      for (const checker of former.checkers) checker.stop();
      former.holdings?.close();
      this.#text = text;
    }
    const known = this.#hosts;
    const wanted = hosts.map((host) => [keyOf(host), host] as const);
    this.#hosts = new Map(wanted.map(([key, host]) => [key, known.get(key) ?? new DelegatedHost(host)]));
    const found = [...this.#hosts.values()].map((host) => host.findings(checks.length));
    for (const [at, checker] of this.#checkers.entries()) checker.setHosts(found.map((findings) => findings[at]!));
  }

  /** Those of which something can be said. */
  localities(): readonly FoundLocality[] {
    const found = new Map<string, FoundLocality & { readonly hosts: FoundLocality['hosts'][number][] }>();
    for (const { settings, health } of this.#hosts.values()) {
      if (isCheckDisabled(settings)) continue;
      const { address, locality } = settings;
      const key = JSON.stringify([locality.region, locality.zone, locality.subZone]);
      const group = found.get(key) ?? { locality, hosts: [] };
      found.set(key, group);
      group.hosts.push({ address, health });
    }
    return [...found.values()];
  }

  /** Nothing is checked any more. Idempotent. */
  close(): void {
    for (const checker of this.#checkers) checker.stop();
    this.#holdings?.close();
    this.#checkers = [];
    this.#holdings = undefined;
  }

  #begin(settings: ClusterSettings, checks: readonly OrderedCheck[]): void {
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
        onPassed: () => {},
        onHealthChange: () => {},
      };
      this.#checkers = checks.map(({ settings: check, isOfSilentHosts }) => {
        holdings.hold(checking.events.hold(check.eventLogPaths));
        const hasTraffic = (): boolean => !isOfSilentHosts;
        const tools = { ...checking, stats: holdings };
        return new HealthChecker<CheckFinding>(check, { ...cluster, hasTraffic }, tools);
      });
      this.#holdings = holdings;
    } catch (error) {
      holdings.close();
      throw error;
    }
    for (const checker of this.#checkers) checker.start();
  }
}

function isCheckDisabled({ check }: HostSettings): boolean {
  return check?.isDisabled ?? false;
}

function keyOf({ address, locality, hostname, check, metadata }: HostSettings): string {
  return JSON.stringify([formatAddress(address), locality, hostname, check ?? null, metadata ?? null]);
}
