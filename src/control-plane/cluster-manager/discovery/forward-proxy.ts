// A cluster whose members are the hosts that requests name: those that its DNS cache knows. A worker that wants one it does not
// know asks for it, and is told of it as all workers are, or that there is none. Main thread.

import type { IpAddress } from '../../../base/address.ts';
import { ALTERNATING, inFamilyOrder } from '../../../base/address-families.ts';
import { errorMessage } from '../../../base/errors.ts';
import { BARE_ENDPOINT } from '../../../config/index.ts';
import type { Logger } from '../../../log/index.ts';
import type { HostRefusal, HostSettings, NamedAddress } from '../../../snapshot/index.ts';
import { type DnsCache, type DnsCacheUser, hostKey } from '../../dns-cache/dns-cache.ts';
import type { Discovery } from './discovery.ts';
import type { OnDemandMembers, UsedHost } from './original-dst.ts';

/** The cluster whose members these are. */
export interface NamedMembers<Host extends UsedHost> extends OnDemandMembers<Host> {
  /** Gives a member another address. */
  update(host: Host, member: HostSettings): void;
  /** Tells all workers that there is no such member, for those who wait for it. */
  refuse(key: string, reason: HostRefusal): void;
}

export class ForwardProxyDiscovery<Host extends UsedHost> implements Discovery, DnsCacheUser {
  readonly #cache: DnsCache;
  readonly #log: Logger;
  readonly #cluster: NamedMembers<Host>;
  /** Their uses when the cache asked last. */
  readonly #uses = new Map<Host, number>();
  /** Members of which not all workers know: whoever waits for one of them has had no chance to use it. */
  readonly #arriving = new Set<Host>();
  #isStopped = false;

  constructor(cache: DnsCache, log: Logger, cluster: NamedMembers<Host>) {
    this.#cache = cache;
    this.#log = log;
    this.#cluster = cluster;
  }

  start(): void {
    this.#cluster.onReady();
    this.#cache.join(this);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cache.leave(this);
  }

  /**
   * A worker wants a host that it does not know, perhaps because it has not been told of it yet.
   * @returns why it gets none; undefined when one is on its way, or being looked for.
   */
  want({ ip: name, port }: IpAddress): HostRefusal | undefined {
    if (this.#isStopped) return 'overflow';
    const named = { name, port };
    const key = hostKey(named);
    switch (this.#cache.want(key, named)) {
      case 'refused':
        return 'overflow';
      case 'missing':
        return 'dns';
      case 'looking up':
        return undefined;
      case 'found':
        // The cluster had no room for it then.
        return this.#cluster.member(key) === undefined ? 'overflow' : undefined;
    }
  }

  onAddresses(key: string, named: NamedAddress, ips: readonly string[]): void {
    const member = memberOf(key, named, ips);
    const known = this.#cluster.member(key);
    try {
      if (known !== undefined) this.#cluster.update(known, member);
      const host = known ?? this.#cluster.make(member);
      this.#arriving.add(host);
      this.#cluster.publish([host], () => this.#arriving.delete(host));
    } catch (error) {
      this.#log.error(`cluster ${this.#cluster.name} cannot make the host ${key}: ${errorMessage(error)}`);
      this.#cluster.refuse(key, 'overflow');
    }
  }

  onMissing(key: string): void {
    this.#cluster.refuse(key, 'dns');
  }

  onForgotten(key: string): void {
    const host = this.#cluster.member(key);
    if (host === undefined) return;
    this.#uses.delete(host);
    this.#cluster.remove([host]);
  }

  isUsed(key: string): boolean {
    const host = this.#cluster.member(key);
    if (host === undefined) return false;
    const before = this.#uses.get(host) ?? 0;
    const { uses } = host;
    this.#uses.set(host, uses);
    // One that came again would come as a healthy one.
    const isKept = host.takeWanted() || host.isEjected || this.#arriving.has(host);
    return isKept || uses !== before || host.activeConnections > 0;
  }
}

function memberOf(key: string, named: NamedAddress, ips: readonly string[]): HostSettings {
  const addresses = ips.map((ip) => ({ kind: 'ip', ip, port: named.port }) as const);
  return {
    ...BARE_ENDPOINT,
    address: addresses[0]!,
    hostname: named.name,
    ...(addresses.length > 1 && { connectOrder: inFamilyOrder(addresses, ALTERNATING) }),
    logicalName: key,
    named,
  };
}
