// DNS discovery over answers that a test gives and a clock that it turns.

import { ALTERNATING } from '../../src/base/address-families.ts';
import type {
  Discovery,
  DiscoveryListener,
  DiscoveryStats,
  DiscoveryTools,
} from '../../src/control-plane/cluster-manager/discovery/discovery.ts';
import { LogicalDnsDiscovery } from '../../src/control-plane/cluster-manager/discovery/logical-dns.ts';
import { StrictDnsDiscovery } from '../../src/control-plane/cluster-manager/discovery/strict-dns.ts';
import type { DnsAnswer, DnsResolver } from '../../src/control-plane/dns/dns-resolver.ts';
import { HeldResolver } from '../../src/control-plane/dns/resolvers.ts';
import { Loggers } from '../../src/log/index.ts';
import type { DnsDiscoverySettings, DnsResolverSettings, DnsTarget, HostSettings } from '../../src/snapshot/index.ts';
import { NO_FAULTS } from './faults.ts';
import { ManualClock } from './manual-clock.ts';

/** The servers of the system, asked as the defaults say. */
export const RESOLVER: DnsResolverSettings = {
  servers: [],
  serversAreFallback: false,
  useTcp: false,
  useSearchDomains: true,
  rotate: false,
  queryTimeoutMs: 5000,
  queryTries: 4,
};

export const REFRESH_MS = 5000;

export function target(name: string, fields: Partial<DnsTarget> = {}): DnsTarget {
  const locality = { region: '', zone: '', subZone: '' };
  const common = {
    hostname: '',
    weight: 1,
    locality,
    priority: 0,
    canary: false,
    health: 'healthy',
    localityWeight: 0,
    hashKey: '',
    subsetValues: [],
  } as const;
  return { name, port: 80, ...common, ...fields };
}

export function found(ips: readonly string[], ttlSeconds = 0): DnsAnswer {
  return { kind: 'success', addresses: ips.map((ip) => ({ ip, ttlSeconds })) };
}

export const FAILED: DnsAnswer = { kind: 'failure', reason: 'ESERVFAIL' };

/** Answers in the order in which they were set, the last one again and again; an error is thrown. */
class ScriptedResolver implements DnsResolver {
  readonly asked: string[] = [];
  readonly #answers = new Map<string, (DnsAnswer | Error)[]>();

  script(name: string, ...answers: (DnsAnswer | Error)[]): void {
    this.#answers.set(name, answers);
  }

  async lookup(name: string): Promise<DnsAnswer> {
    this.asked.push(name);
    const answers = this.#answers.get(name)!;
    const answer = answers.length > 1 ? answers.shift()! : answers[0]!;
    if (answer instanceof Error) throw answer;
    return answer;
  }

  cancel(): void {}
}

type MakeDiscovery = (
  name: string,
  settings: DnsDiscoverySettings,
  stats: DiscoveryStats,
  tools: DiscoveryTools,
  listener: DiscoveryListener,
) => Discovery;

const byDns: MakeDiscovery = (name, settings, ...others) =>
  settings.kind === 'strict-dns'
    ? new StrictDnsDiscovery(name, settings, ...others)
    : new LogicalDnsDiscovery(name, settings, ...others);

export class DiscoveryFixture {
  readonly clock = new ManualClock();
  readonly resolver = new ScriptedResolver();
  readonly updates: (readonly HostSettings[])[] = [];
  readonly counts = new Map<string, number>();
  readonly logged: string[] = [];
  readyCount = 0;
  /** Of resolvers. */
  holders = 0;
  random = 0;
  readonly discovery: Discovery;

  /** @param make of the discovery in question; by DNS alone when absent. */
  constructor(
    targets: readonly DnsTarget[],
    settings: Partial<DnsDiscoverySettings> = {},
    make: MakeDiscovery = byDns,
  ) {
    const loggers = new Loggers({
      levels: { default: 'info' },
      threadId: 0,
      sink: { write: ({ message }) => this.logged.push(message) },
    });
    const all: DnsDiscoverySettings = {
      kind: 'strict-dns',
      targets,
      lookupFamily: 'AUTO',
      familyOrder: ALTERNATING,
      refreshRateMs: REFRESH_MS,
      failureRefresh: undefined,
      jitterMs: 0,
      respectTtl: false,
      resolver: RESOLVER,
      ...settings,
    };
    this.discovery = make(
      'shop',
      all,
      { add: (name) => this.counts.set(name, this.count(name) + 1) },
      {
        faults: NO_FAULTS,
        clock: this.clock,
        random: { u32: () => this.random },
        resolvers: {
          hold: () => {
            this.holders += 1;
            return new HeldResolver(this.resolver, () => {
              this.holders -= 1;
            });
          },
        },
        log: loggers.get('upstream'),
      },
      { onHosts: (hosts) => this.updates.push(hosts), onReady: () => this.readyCount++ },
    );
  }

  count(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  async start(): Promise<void> {
    this.discovery.start();
    await settle();
  }

  async turn(byMs: number): Promise<void> {
    this.clock.turn(byMs);
    await settle();
  }

  /** Addresses of the last update. */
  get ips(): string[] {
    return (this.updates.at(-1) ?? []).map(({ address }) => (address.kind === 'ip' ? address.ip : address.path));
  }
}

/** Lets answers arrive: they are promises that are fulfilled already. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
