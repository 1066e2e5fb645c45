// LOGICAL_DNS: one member, whose address is the first that was found last. New connections go there, old ones stay as
// they are. A failed lookup and an empty answer keep the address.

import { formatAddress } from '../../../base/address.ts';
import type { DnsDiscoverySettings } from '../../../snapshot/index.ts';
import type { DnsAnswer } from '../../dns/dns-resolver.ts';
import type { Discovery, DiscoveryListener, DiscoveryStats, DiscoveryTools } from './discovery.ts';
import { ResolveTarget } from './resolve-target.ts';

export class LogicalDnsDiscovery implements Discovery {
  readonly #listener: DiscoveryListener;
  readonly #stats: DiscoveryStats;
  readonly #target: ResolveTarget;
  #currentIp: string | undefined;
  #isReady = false;

  constructor(
    settings: DnsDiscoverySettings,
    stats: DiscoveryStats,
    tools: DiscoveryTools,
    listener: DiscoveryListener,
  ) {
    this.#listener = listener;
    this.#stats = stats;
    const [target] = settings.targets;
    const resolver = tools.resolvers.get(settings.resolver);
    this.#target = new ResolveTarget(target!, settings, tools, resolver, {
      onLookup: () => stats.add('update_attempt'),
      onAnswer: (_target, answer) => this.#onAnswer(answer),
    });
  }

  start(): void {
    this.#target.start();
  }

  stop(): void {
    this.#target.stop();
  }

  #onAnswer(answer: DnsAnswer): void {
    if (answer.kind === 'failure') this.#stats.add('update_failure');
    else this.#takeOver(answer.addresses[0]!.ip);
    if (this.#isReady) return;
    this.#isReady = true;
    this.#listener.onReady();
  }

  #takeOver(ip: string): void {
    this.#stats.add('update_success');
    if (ip === this.#currentIp) this.#stats.add('update_no_rebuild');
    else {
      this.#currentIp = ip;
      const { name, port, ...endpoint } = this.#target.target;
      const logicalName = formatAddress({ kind: 'ip', ip: name, port });
      const hostname = endpoint.hostname === '' ? name : endpoint.hostname;
      const address = { kind: 'ip', ip, port } as const;
      this.#listener.onHosts([{ ...endpoint, address, hostname, logicalName, priority: 0 }]);
    }
  }
}
