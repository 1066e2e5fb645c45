// LOGICAL_DNS: one member, whose addresses are those that were found last; the first of them stands for it. New
// connections go there, old ones stay as they are. A failed lookup and an empty answer keep the addresses.

import { formatAddress } from '../../../base/address.ts';
import { type FamilyOrder, inFamilyOrder } from '../../../base/address-families.ts';
import type { DnsDiscoverySettings } from '../../../snapshot/index.ts';
import type { DnsAnswer } from '../../dns/dns-resolver.ts';
import type { HeldResolver } from '../../dns/resolvers.ts';
import type { Discovery, DiscoveryListener, DiscoveryStats, DiscoveryTools } from './discovery.ts';
import { ResolveTarget } from './resolve-target.ts';

export class LogicalDnsDiscovery implements Discovery {
  readonly #listener: DiscoveryListener;
  readonly #stats: DiscoveryStats;
  readonly #target: ResolveTarget;
  readonly #familyOrder: FamilyOrder;
  /** All of them as one text; undefined before the first answer. */
  #currentIps: string | undefined;
  readonly #resolver: HeldResolver;
  #isReady = false;

  constructor(
    clusterName: string,
    settings: DnsDiscoverySettings,
    stats: DiscoveryStats,
    tools: DiscoveryTools,
    listener: DiscoveryListener,
  ) {
    this.#listener = listener;
    this.#stats = stats;
    this.#familyOrder = settings.familyOrder;
    const [target] = settings.targets;
    this.#resolver = tools.resolvers.hold(settings.resolver);
    this.#target = new ResolveTarget(target!, settings, tools, this.#resolver, {
      clusterName,
      onLookup: () => stats.add('update_attempt'),
      onAnswer: (_target, answer) => this.#onAnswer(answer),
    });
  }

  start(): void {
    this.#target.start();
  }

  stop(): void {
    this.#target.stop();
    this.#resolver.release();
  }

  #onAnswer(answer: DnsAnswer): void {
    if (answer.kind === 'failure') this.#stats.add('update_failure');
    else this.#takeOver(answer.addresses.map(({ ip }) => ip));
    if (this.#isReady) return;
    this.#isReady = true;
    this.#listener.onReady();
  }

  #takeOver(ips: readonly string[]): void {
    this.#stats.add('update_success');
    const text = ips.join();
    if (text === this.#currentIps) this.#stats.add('update_no_rebuild');
    else {
      this.#currentIps = text;
      const { name, port, ...endpoint } = this.#target.target;
      const logicalName = formatAddress({ kind: 'ip', ip: name, port });
      const hostname = endpoint.hostname === '' ? name : endpoint.hostname;
      const addresses = ips.map((ip) => ({ kind: 'ip', ip, port }) as const);
      const member = { ...endpoint, address: addresses[0]!, hostname, logicalName, priority: 0 };
      const isAlone = addresses.length === 1;
      this.#listener.onHosts([
        isAlone ? member : { ...member, connectOrder: inFamilyOrder(addresses, this.#familyOrder) },
      ]);
    }
  }
}
