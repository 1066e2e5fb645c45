// The resolvers of the process: clusters with equal resolver settings share one, and with it its bound of questions
// under way.

import type { Clock } from '../../base/clock.ts';
import type { DnsResolverSettings } from '../../snapshot/index.ts';
import type { DnsResolver } from './dns-resolver.ts';
import { HostsFile } from './hosts-file.ts';
import { ResolverFile } from './resolver-file.ts';
import { SystemResolver } from './system-resolver.ts';

export class DnsResolvers {
  readonly #clock: Clock;
  readonly #hostsFile: HostsFile;
  readonly #resolverFile: ResolverFile;
  readonly #bySettings = new Map<string, DnsResolver>();

  constructor(clock: Clock, hostsFile: HostsFile = new HostsFile(), resolverFile: ResolverFile = new ResolverFile()) {
    this.#clock = clock;
    this.#hostsFile = hostsFile;
    this.#resolverFile = resolverFile;
  }

  get(settings: DnsResolverSettings): DnsResolver {
    const key = JSON.stringify(settings);
    const known = this.#bySettings.get(key);
    if (known !== undefined) return known;
    const resolver = new SystemResolver({
      settings,
      hostsFile: this.#hostsFile,
      resolverFile: this.#resolverFile,
      clock: this.#clock,
    });
    this.#bySettings.set(key, resolver);
    return resolver;
  }

  /** Gives up all lookups, for good: they would keep the process alive. */
  cancel(): void {
    for (const resolver of this.#bySettings.values()) resolver.cancel();
  }
}
