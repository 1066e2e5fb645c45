// The resolvers of the process: clusters with equal resolver settings share one, and with it its sockets.

import type { DnsDiscoverySettings } from '../../snapshot/index.ts';
import type { DnsResolver } from './dns-resolver.ts';
import { HostsFile } from './hosts-file.ts';
import { NO_SEARCH, readSearchList } from './search-list.ts';
import { SystemResolver } from './system-resolver.ts';

export type ResolverSettings = Pick<DnsDiscoverySettings, 'resolvers' | 'useSearchDomains'>;

export class DnsResolvers {
  readonly #hostsFile: HostsFile;
  readonly #bySettings = new Map<string, DnsResolver>();

  constructor(hostsFile: HostsFile = new HostsFile()) {
    this.#hostsFile = hostsFile;
  }

  get(settings: ResolverSettings): DnsResolver {
    const key = JSON.stringify([settings.resolvers, settings.useSearchDomains]);
    const known = this.#bySettings.get(key);
    if (known !== undefined) return known;
    const resolver = new SystemResolver({
      servers: settings.resolvers,
      hostsFile: this.#hostsFile,
      searchList: settings.useSearchDomains ? readSearchList() : NO_SEARCH,
    });
    this.#bySettings.set(key, resolver);
    return resolver;
  }

  /** Gives up all lookups, which would keep the process alive. */
  cancel(): void {
    for (const resolver of this.#bySettings.values()) resolver.cancel();
  }
}
