// The hosts that clients of forward proxies have named, with the addresses of their names. Main thread.
//
//   unknown ──wanted──► LOOKING UP ──addresses──► FOUND ──due, still used──► looked up again, its addresses stay meanwhile
//                           │                       └──due, unused for host_ttl──► unknown
//                           └──none──► MISSING ──due, wanted since──► LOOKING UP
//                                         └──due, wanted by nobody──► unknown
//
// A name without an address is remembered until it is due: whoever wants it meanwhile hears at once, and no server is asked.
// Clients say which hosts there are: their number is limited, and names that lead nowhere do not stay.

import { isIP } from 'node:net';
import { formatAddress } from '../../base/address.ts';
import { JitteredBackoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../log/index.ts';
import type { DnsCacheSettings, NamedAddress } from '../../snapshot/index.ts';
import type { DNS_CACHE_STATS } from '../../stats/index.ts';
import type { DnsAddress, DnsAnswer, DnsResolver } from '../dns/dns-resolver.ts';

/** As loggers know this file. */
const FILE = 'src/control-plane/dns-cache/dns-cache.ts';
const NOT_FOUND: DnsAnswer = { kind: 'failure', reason: 'the name has no address' };
const TOO_LATE: DnsAnswer = { kind: 'failure', reason: 'no answer in time' };

/** A cluster that sends to the hosts of the cache. Keys are hosts as text (hostKey). */
export interface DnsCacheUser {
  /** @param ips one or more, other ones than before. */
  onAddresses(key: string, host: NamedAddress, ips: readonly string[]): void;
  /** Who waits for the host gets none. */
  onMissing(key: string): void;
  onForgotten(key: string): void;
  /** Somebody has used the host since this was asked last. */
  isUsed(key: string): boolean;
}

/** As requests name it in messages between threads. */
export function hostKey({ name, port }: NamedAddress): string {
  return formatAddress({ kind: 'ip', ip: name, port });
}

/** `refused`: there are as many hosts as there may be. */
export type WantedHost = 'found' | 'looking up' | 'missing' | 'refused';

export interface DnsCacheTools {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly random: Random;
  readonly log: Logger;
}

export type DnsCacheCounts = {
  add(name: keyof (typeof DNS_CACHE_STATS)['index'], n?: number): void;
};

interface Entry {
  readonly key: string;
  readonly host: NamedAddress;
  readonly backoff: JitteredBackoff | undefined;
  /** Empty as long as it has none. */
  ips: readonly string[];
  isLookingUp: boolean;
  /** Of a name without an address. */
  isWantedSince: boolean;
  usedMs: number;
  cancelTimer: () => void;
}

export class DnsCache {
  readonly settings: DnsCacheSettings;
  readonly #tools: DnsCacheTools;
  readonly #log: Logger;
  readonly #resolver: Pick<DnsResolver, 'lookup'>;
  readonly #stats: DnsCacheCounts;
  readonly #entries = new Map<string, Entry>();
  readonly #users = new Set<DnsCacheUser>();
  #hasStarted = false;
  #isClosed = false;
  #hasRefused = false;

  constructor(
    settings: DnsCacheSettings,
    resolver: Pick<DnsResolver, 'lookup'>,
    stats: DnsCacheCounts,
    tools: DnsCacheTools,
  ) {
    this.settings = settings;
    this.#resolver = resolver;
    this.#stats = stats;
    this.#tools = tools;
    this.#log = tools.log.ofFile(FILE);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Tells the user of the hosts that there are, and of all that changes. */
  join(user: DnsCacheUser): void {
    this.#users.add(user);
    for (const { key, host, ips } of this.#entries.values()) if (ips.length > 0) user.onAddresses(key, host, ips);
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    for (const host of this.settings.preresolved) this.want(hostKey(host), host);
  }

  leave(user: DnsCacheUser): void {
    this.#users.delete(user);
  }

  /** Somebody wants this host. What becomes of one that is being looked up users are told. */
  want(key: string, host: NamedAddress): WantedHost {
    const known = this.#entries.get(key);
    if (known !== undefined) return this.#wantKnown(known);
    const { maxHosts, name, failureRefresh } = this.settings;
    const { clock, random } = this.#tools;
    if (this.#entries.size >= maxHosts) {
      this.#stats.add('host_overflow');
      // A cache that stays full is worth one line, not one per host.
      if (!this.#hasRefused) this.#log.warning(`DNS cache ${name} has ${maxHosts} hosts, and takes no more`);
      this.#hasRefused = true;
      return 'refused';
    }
    const entry: Entry = {
      key,
      host,
      backoff: failureRefresh && new JitteredBackoff(random, failureRefresh.baseMs, failureRefresh.maxMs),
      ips: [],
      isLookingUp: false,
      isWantedSince: false,
      usedMs: clock.monotonicMs(),
      cancelTimer: () => {},
    };
    this.#entries.set(key, entry);
    this.#stats.add('host_added');
    this.#stats.add('num_hosts');
    this.#lookUp(entry);
    return entry.ips.length > 0 ? 'found' : 'looking up';
  }

  /** Nobody uses it any more. */
  close(): void {
    this.#isClosed = true;
    this.#users.clear();
    for (const { cancelTimer } of this.#entries.values()) cancelTimer();
    this.#stats.add('num_hosts', -this.#entries.size);
    this.#entries.clear();
  }

  #wantKnown(entry: Entry): WantedHost {
    entry.isWantedSince = true;
    entry.usedMs = this.#tools.clock.monotonicMs();
    if (entry.ips.length > 0) return 'found';
    return entry.isLookingUp ? 'looking up' : 'missing';
  }

  #lookUp(entry: Entry): void {
    this.#stats.add('dns_query_attempt');
    const { name } = entry.host;
    if (isIP(name) !== 0) {
      // An address is its own answer.
      this.#answered(entry, { kind: 'success', addresses: [{ ip: name, ttlSeconds: 0 }] });
      return;
    }
    entry.isLookingUp = true;
    const { queryTimeoutMs } = this.settings;
    const { clock, faults } = this.#tools;
    let isAnswered = false;
    const take = (answer: DnsAnswer): void => {
      if (isAnswered || this.#isClosed) return;
      isAnswered = true;
      entry.cancelTimer();
      this.#answered(entry, answer);
    };
    entry.cancelTimer = () => {};
    if (queryTimeoutMs > 0) {
      entry.cancelTimer = clock.after(queryTimeoutMs, () => {
        this.#stats.add('dns_query_timeout');
        take(TOO_LATE);
      });
    }
    faults.run('a DNS lookup', async () => take(await this.#ask(name)));
  }

  /** A lookup that throws is a failed one: the next must follow it. */
  async #ask(name: string): Promise<DnsAnswer> {
    try {
      const answer = await this.#resolver.lookup(name, this.settings.lookupFamily);
      return answer.kind === 'success' && answer.addresses.length === 0 ? NOT_FOUND : answer;
    } catch (error) {
      return { kind: 'failure', reason: errorMessage(error) };
    }
  }

  #answered(entry: Entry, answer: DnsAnswer): void {
    entry.isLookingUp = false;
    this.#lookAgainLater(entry, answer);
    if (answer.kind === 'success') this.#found(entry, answer.addresses);
    else this.#failed(entry, answer.reason);
  }

  #found(entry: Entry, addresses: readonly DnsAddress[]): void {
    this.#stats.add('dns_query_success');
    const ips = addresses.map(({ ip }) => ip);
    // In whatever order: servers turn it with each answer.
    if (entry.ips.toSorted().join() === ips.toSorted().join()) return;
    entry.ips = ips;
    this.#stats.add('host_address_changed');
    this.#log.debug(`DNS cache ${this.settings.name}: ${entry.key} is at ${ips.join(', ')}`);
    for (const user of this.#users) user.onAddresses(entry.key, entry.host, ips);
  }

  /** One that has addresses keeps them. */
  #failed(entry: Entry, reason: string): void {
    this.#stats.add('dns_query_failure');
    const { name, forgetsFailures } = this.settings;
    this.#log.debug(`DNS cache ${name}: ${entry.key} was not found: ${reason}`);
    if (entry.ips.length > 0) return;
    entry.isWantedSince = false;
    if (forgetsFailures) this.#forget(entry);
    for (const user of this.#users) user.onMissing(entry.key);
  }

  #lookAgainLater(entry: Entry, answer: DnsAnswer): void {
    entry.cancelTimer = this.#tools.clock.after(this.#waitMs(entry, answer), () => {
      if (this.#isNeeded(entry)) this.#lookUp(entry);
      else this.#forget(entry);
    });
  }

  #waitMs({ backoff }: Entry, answer: DnsAnswer): number {
    const { refreshRateMs, minRefreshRateMs } = this.settings;
    if (answer.kind === 'failure') return backoff?.nextMs() ?? refreshRateMs;
    backoff?.reset();
    const ttlSeconds = Math.min(...answer.addresses.map((address) => address.ttlSeconds));
    return ttlSeconds === 0 ? refreshRateMs : Math.max(minRefreshRateMs, ttlSeconds * 1000);
  }

  #isNeeded(entry: Entry): boolean {
    if (entry.ips.length === 0) return entry.isWantedSince;
    const nowMs = this.#tools.clock.monotonicMs();
    // Each is asked: what it tells is what has been since.
    for (const user of this.#users) if (user.isUsed(entry.key)) entry.usedMs = nowMs;
    return nowMs - entry.usedMs < this.settings.hostTtlMs;
  }

  #forget(entry: Entry): void {
    entry.cancelTimer();
    this.#entries.delete(entry.key);
    this.#hasRefused = false;
    this.#stats.add('host_removed');
    this.#stats.add('num_hosts', -1);
    if (entry.ips.length > 0) for (const user of this.#users) user.onForgotten(entry.key);
  }
}
