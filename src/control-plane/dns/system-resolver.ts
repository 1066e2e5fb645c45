// Lookups as the system makes them: /etc/hosts first, then DNS servers, for short names in the domains of the search
// list. Main thread; never uses the thread pool's getaddrinfo, which knows no times to live.

import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { isHostName } from '../../base/host-name.ts';
import type { DnsLookupFamily, DnsResolverSettings } from '../../snapshot/index.ts';
import { DnsClient, type DnsServerList } from './dns-client.ts';
import type { DnsAddress, DnsAnswer, DnsResolver } from './dns-resolver.ts';
import type { HostsFile } from './hosts-file.ts';
import { NO_SEARCH, type ResolverFile, searchCandidates } from './resolver-file.ts';

export interface SystemResolverOptions {
  readonly settings: DnsResolverSettings;
  readonly hostsFile: HostsFile;
  readonly resolverFile: ResolverFile;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  /** Those of the system by default. */
  readonly interfaces?: () => Interfaces;
}

type Interfaces = ReturnType<typeof networkInterfaces>;

type IpVersion = 4 | 6;

const NOTHING_FOUND: DnsAnswer = { kind: 'success', addresses: [] };

/** Versions in the order of asking; the next one is asked when there is no address yet, with `all` in any case. */
const VERSIONS: Readonly<Record<DnsLookupFamily, { readonly order: readonly IpVersion[]; readonly all?: boolean }>> = {
  AUTO: { order: [6, 4] },
  V4_ONLY: { order: [4] },
  V6_ONLY: { order: [6] },
  V4_PREFERRED: { order: [4, 6] },
  ALL: { order: [6, 4], all: true },
};

export class SystemResolver implements DnsResolver {
  readonly #settings: DnsResolverSettings;
  readonly #hostsFile: HostsFile;
  readonly #resolverFile: ResolverFile;
  readonly #client: DnsClient;
  readonly #interfaces: () => Interfaces;

  constructor(options: SystemResolverOptions) {
    const { settings, hostsFile, resolverFile, clock, faults, interfaces = networkInterfaces } = options;
    this.#interfaces = interfaces;
    this.#settings = settings;
    this.#hostsFile = hostsFile;
    this.#resolverFile = resolverFile;
    const { queryTimeoutMs, queryTries, udpPayloadBytes = 0 } = settings;
    this.#client = new DnsClient({
      clock,
      faults,
      servers: async () => chooseServers(settings, await resolverFile.read()),
      timeoutMs: queryTimeoutMs,
      tries: queryTries,
      payloadBytes: udpPayloadBytes,
    });
  }

  async lookup(name: string, family: DnsLookupFamily): Promise<DnsAnswer> {
    const { order, all } = VERSIONS[family];
    const found: DnsAddress[] = [];
    let failure: DnsAnswer | undefined;
    for (const version of order) {
      if (this.#settings.leavesOutUnroutable && !hasRoutes(version, this.#interfaces())) continue;
      const answer = await this.#lookupVersion(name, version);
      if (answer.kind === 'failure') failure = answer;
      else found.push(...answer.addresses);
      if (found.length > 0 && all !== true) break;
    }
    // What was found counts, even when asking for the other version failed.
    if (found.length === 0 && failure !== undefined) return failure;
    return { kind: 'success', addresses: found };
  }

  cancel(): void {
    this.#client.cancel();
  }

  async #lookupVersion(name: string, version: IpVersion): Promise<DnsAnswer> {
    const listed = await this.#hostsFile.find(name);
    if (listed !== undefined) {
      const addresses = listed.filter((ip) => isIP(ip) === version).map((ip) => ({ ip, ttlSeconds: 0 }));
      return { kind: 'success', addresses };
    }
    const searchList = this.#settings.useSearchDomains ? (await this.#resolverFile.read()).searchList : NO_SEARCH;
    for (const candidate of searchCandidates(name, searchList)) {
      // With a search domain a name can become too long for one.
      if (!isHostName(candidate)) continue;
      const answer = await this.#client.query(candidate, version === 4 ? 'A' : 'AAAA');
      if (answer.kind === 'failure') return { ...answer, reason: `${answer.reason} for ${candidate}` };
      if (answer.addresses.length > 0) return answer;
    }
    return NOTHING_FOUND;
  }
}

function hasRoutes(version: IpVersion, interfaces: Interfaces): boolean {
  const addresses = Object.values(interfaces).flatMap((ofOne) => ofOne ?? []);
  return addresses.some(({ family, internal }) => !internal && family === `IPv${version}`);
}

/** Where the system asks when its file names no server. */
const LOCAL_SERVER = [{ ip: '127.0.0.1', port: 53 }];

/** Whom to ask, and how: as the configuration says where it names servers that are no mere fallback. */
export function chooseServers(settings: DnsResolverSettings, system: DnsServerList): DnsServerList {
  const { servers, serversAreFallback, useTcp, rotate } = settings;
  if (servers.length > 0 && !(serversAreFallback && system.servers.length > 0)) return { servers, useTcp, rotate };
  return {
    servers: system.servers.length > 0 ? system.servers : LOCAL_SERVER,
    useTcp: useTcp || system.useTcp,
    rotate: rotate || system.rotate,
  };
}
