// Hosts that filters choose in place of the balancer, by their addresses, as those of a session. Step 5 of the request flow.

import type { ConfiguredHealth } from '../../snapshot/index.ts';
import { HealthFlag } from '../../wasm/shared-records.ts';

/** What a filter wants of the choice of a host for a request's first attempt; those that follow go where the balancer says. */
export interface OverrideHost {
  /** As logs show it, `10.0.0.1:80`. */
  readonly address: string;
  /** The request has no host where this one may not be used. */
  readonly isStrict: boolean;
}

/** Those that serve. */
const DEFAULT_HEALTH: readonly ConfiguredHealth[] = ['unknown', 'healthy', 'degraded'];

const FAILED = HealthFlag.failedActiveHealthCheck | HealthFlag.failedOutlierCheck;
const NOT_SERVING: ReadonlySet<ConfiguredHealth> = new Set(['unhealthy', 'timeout', 'draining']);

interface Member {
  readonly label: string;
  readonly healthFlags: number;
  readonly configuredHealth: ConfiguredHealth;
}

/** What has been found out about a host goes before what the configuration says of it. */
export function healthOf({ healthFlags, configuredHealth }: Member): ConfiguredHealth {
  if ((healthFlags & FAILED) !== 0) return 'unhealthy';
  if (NOT_SERVING.has(configuredHealth)) return configuredHealth;
  return (healthFlags & HealthFlag.degradedActiveHealthCheck) === 0 ? configuredHealth : 'degraded';
}

export class OverrideHosts<Host extends Member> {
  readonly #accepted: ReadonlySet<ConfiguredHealth>;
  /** Null until somebody asks. */
  #byAddress: Map<string, Host> | null = null;

  /** @param accepted undefined for those that serve. */
  constructor(accepted: readonly ConfiguredHealth[] = DEFAULT_HEALTH) {
    this.#accepted = new Set(accepted);
  }

  /** Members have come, gone or moved. */
  forget(): void {
    this.#byAddress = null;
  }

  /** @returns undefined where the balancer is to choose, null for no host at all. */
  choose({ address, isStrict }: OverrideHost, members: Iterable<Host>): Host | null | undefined {
    // Whoever accepts no host wants none of this, and nothing of what goes with it.
    if (this.#accepted.size === 0) return undefined;
    this.#byAddress ??= byAddress(members);
    const host = this.#byAddress.get(address);
    if (host !== undefined && this.#accepted.has(healthOf(host))) return host;
    return isStrict ? null : undefined;
  }
}

function byAddress<Host extends Member>(members: Iterable<Host>): Map<string, Host> {
  const hosts = new Map<string, Host>();
  for (const host of members) hosts.set(host.label, host);
  return hosts;
}
