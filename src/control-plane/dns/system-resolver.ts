// Lookups as the reference makes them with c-ares: /etc/hosts first, then the servers, over UDP and, for a truncated
// answer, TCP. node:dns brings c-ares itself, but its calls with TTLs ask servers alone and take names as they are;
// files and search domains are therefore handled here. Main thread; never uses the thread pool's getaddrinfo.

import { promises as dns } from 'node:dns';
import { isIP } from 'node:net';
import type { DnsLookupFamily } from '../../snapshot/index.ts';
import type { DnsAddress, DnsAnswer, DnsResolver } from './dns-resolver.ts';
import type { HostsFile } from './hosts-file.ts';
import { type SearchList, searchCandidates } from './search-list.ts';

export interface SystemResolverOptions {
  /** `1.2.3.4:53`; empty for the servers of the system. */
  readonly servers: readonly string[];
  readonly hostsFile: HostsFile;
  readonly searchList: SearchList;
}

type IpVersion = 4 | 6;

const QUERY_TIMEOUT_MS = 5000;
const TRIES = 4;
/** c-ares' codes for answers that say: there are no such addresses. */
const NO_ADDRESSES: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND']);
const NOTHING_FOUND: DnsAnswer = { kind: 'success', addresses: [] };

/** Versions in the order of asking; the next one is asked when there is no address yet, or always with `all`. */
const VERSIONS: Readonly<Record<DnsLookupFamily, { readonly order: readonly IpVersion[]; readonly all: boolean }>> = {
  AUTO: { order: [6, 4], all: false },
  V4_ONLY: { order: [4], all: false },
  V6_ONLY: { order: [6], all: false },
  V4_PREFERRED: { order: [4, 6], all: false },
  ALL: { order: [6, 4], all: true },
};

export class SystemResolver implements DnsResolver {
  readonly #resolver = new dns.Resolver({ timeout: QUERY_TIMEOUT_MS, tries: TRIES });
  readonly #hostsFile: HostsFile;
  readonly #searchList: SearchList;

  /** @throws when a server is not an address; the configuration has checked them. */
  constructor(options: SystemResolverOptions) {
    this.#hostsFile = options.hostsFile;
    this.#searchList = options.searchList;
    if (options.servers.length > 0) this.#resolver.setServers(options.servers);
  }

  async lookup(name: string, family: DnsLookupFamily): Promise<DnsAnswer> {
    const { order, all } = VERSIONS[family];
    const found: DnsAddress[] = [];
    let failure: DnsAnswer | undefined;
    for (const version of order) {
      const answer = await this.#lookupVersion(name, version);
      if (answer.kind === 'failure') failure = answer;
      else found.push(...answer.addresses);
      if (found.length > 0 && !all) break;
    }
    // What was found counts, even when asking for the other version failed.
    if (found.length === 0 && failure !== undefined) return failure;
    return { kind: 'success', addresses: found };
  }

  cancel(): void {
    this.#resolver.cancel();
  }

  async #lookupVersion(name: string, version: IpVersion): Promise<DnsAnswer> {
    const listed = await this.#hostsFile.find(name);
    if (listed !== undefined) {
      const addresses = listed.filter((ip) => isIP(ip) === version).map((ip) => ({ ip, ttlSeconds: 0 }));
      return { kind: 'success', addresses };
    }
    for (const candidate of searchCandidates(name, this.#searchList)) {
      const answer = await this.#query(candidate, version);
      if (answer.kind === 'failure' || answer.addresses.length > 0) return answer;
    }
    return NOTHING_FOUND;
  }

  async #query(name: string, version: IpVersion): Promise<DnsAnswer> {
    try {
      const records =
        version === 4
          ? await this.#resolver.resolve4(name, { ttl: true })
          : await this.#resolver.resolve6(name, { ttl: true });
      const addresses = records.map(({ address, ttl }) => ({ ip: address, ttlSeconds: ttl }));
      return { kind: 'success', addresses };
    } catch (error) {
      const { code = 'unknown error' } = error as NodeJS.ErrnoException;
      return NO_ADDRESSES.has(code) ? NOTHING_FOUND : { kind: 'failure', reason: `${code} for ${name}` };
    }
  }
}
