// STRICT_DNS: every address that a lookup finds is a member. Each name is looked up on its own timer; the members of
// the cluster are those of all names. A failed lookup keeps what is known, an empty answer takes it away.

import { formatAddress } from '../../../base/address.ts';
import type { DnsDiscoverySettings, HostSettings } from '../../../snapshot/index.ts';
import type { DnsAddress, DnsAnswer } from '../../dns/dns-resolver.ts';
import type { HeldResolver } from '../../dns/resolvers.ts';
import type { Discovery, DiscoveryListener, DiscoveryStats, DiscoveryTools } from './discovery.ts';
import { ResolveTarget, type ResolveTargetListener } from './resolve-target.ts';

export class StrictDnsDiscovery implements Discovery, ResolveTargetListener {
  readonly clusterName: string;
  readonly #listener: DiscoveryListener;
  readonly #stats: DiscoveryStats;
  /** With the addresses of the last good answer, in the order in which they were first seen. */
  readonly #targets: Map<ResolveTarget, readonly string[]>;
  readonly #resolver: HeldResolver;
  #isReady = false;

  constructor(
    clusterName: string,
    settings: DnsDiscoverySettings,
    stats: DiscoveryStats,
    tools: DiscoveryTools,
    listener: DiscoveryListener,
  ) {
    this.clusterName = clusterName;
    this.#listener = listener;
    this.#stats = stats;
    this.#resolver = tools.resolvers.hold(settings.resolver);
    this.#targets = new Map(
      settings.targets.map((target) => [new ResolveTarget(target, settings, tools, this.#resolver, this), []]),
    );
  }

  start(): void {
    if (this.#targets.size === 0) this.#becomeReady();
    for (const target of this.#targets.keys()) target.start();
  }

  stop(): void {
    for (const target of this.#targets.keys()) target.stop();
    this.#resolver.release();
  }

  onLookup(): void {
    this.#stats.add('update_attempt');
  }

  onAnswer(target: ResolveTarget, answer: DnsAnswer): void {
    if (answer.kind === 'failure') this.#stats.add('update_failure');
    else this.#takeOver(target, answer.addresses);
    this.#becomeReady();
  }

  #takeOver(target: ResolveTarget, addresses: readonly DnsAddress[]): void {
    this.#stats.add('update_success');
    if (addresses.length === 0) this.#stats.add('update_empty');
    const known = this.#targets.get(target)!;
    const found = new Set(addresses.map(({ ip }) => ip));
    // Servers rotate their answers; the order of members changes as little as it can.
    const kept = known.filter((ip) => found.has(ip));
    for (const ip of kept) found.delete(ip);
    if (found.size === 0 && kept.length === known.length) {
      this.#stats.add('update_no_rebuild');
      return;
    }
    this.#targets.set(target, [...kept, ...found]);
    this.#listener.onHosts(this.#hosts());
  }

  /** Members of all names; an address that several of them have belongs to the first. */
  #hosts(): HostSettings[] {
    const hosts = new Map<string, HostSettings>();
    for (const [{ target }, addresses] of this.#targets) {
      const { name, port, ...endpoint } = target;
      const hostname = endpoint.hostname === '' ? name : endpoint.hostname;
      for (const ip of addresses) {
        const address = { kind: 'ip', ip, port } as const;
        const key = formatAddress(address);
        if (!hosts.has(key)) hosts.set(key, { address, ...endpoint, hostname });
      }
    }
    return [...hosts.values()];
  }

  #becomeReady(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#listener.onReady();
  }
}
