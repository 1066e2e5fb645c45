// The resolvers of the process: clusters with equal resolver settings share one, and with it its bound of questions
// under way. It goes with the last of them, and so do the sockets of its questions.

import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { DnsLookupFamily, DnsResolverSettings } from '../../snapshot/index.ts';
import type { DnsAnswer, DnsResolver } from './dns-resolver.ts';
import { HostsFile } from './hosts-file.ts';
import { ResolverFile } from './resolver-file.ts';
import { SystemResolver } from './system-resolver.ts';
import type { ReportUnread } from './watched-text.ts';

export class DnsResolvers {
  readonly #clock: Clock;
  readonly #faults: FaultBoundary;
  readonly #hostsFile: HostsFile;
  readonly #resolverFile: ResolverFile;
  readonly #bySettings = new Map<string, SharedResolver>();

  /** @param report is told of files of the system that cannot be read. */
  static ofSystem(clock: Clock, faults: FaultBoundary, report: ReportUnread): DnsResolvers {
    return new DnsResolvers(clock, faults, new HostsFile(undefined, report), new ResolverFile(undefined, report));
  }

  constructor(
    clock: Clock,
    faults: FaultBoundary,
    hostsFile: HostsFile = new HostsFile(),
    resolverFile: ResolverFile = new ResolverFile(),
  ) {
    this.#clock = clock;
    this.#faults = faults;
    this.#hostsFile = hostsFile;
    this.#resolverFile = resolverFile;
  }

  /** The resolver of these settings, until it is released. */
  hold(settings: DnsResolverSettings): HeldResolver {
    const key = JSON.stringify(settings);
    const shared = this.#bySettings.get(key) ?? { resolver: this.#create(settings), holders: 0 };
    this.#bySettings.set(key, shared);
    shared.holders += 1;
    return new HeldResolver(shared.resolver, () => {
      shared.holders -= 1;
      if (shared.holders > 0) return;
      this.#bySettings.delete(key);
      shared.resolver.cancel();
    });
  }

  #create(settings: DnsResolverSettings): DnsResolver {
    return new SystemResolver({
      settings,
      hostsFile: this.#hostsFile,
      resolverFile: this.#resolverFile,
      clock: this.#clock,
      faults: this.#faults,
    });
  }
}

interface SharedResolver {
  readonly resolver: DnsResolver;
  holders: number;
}

export class HeldResolver {
  readonly #resolver: DnsResolver;
  #release: (() => void) | undefined;

  constructor(resolver: DnsResolver, release: () => void) {
    this.#resolver = resolver;
    this.#release = release;
  }

  lookup(name: string, family: DnsLookupFamily): Promise<DnsAnswer> {
    return this.#resolver.lookup(name, family);
  }

  /** Nobody wants to know any more; what is under way may fail. Idempotent. */
  release(): void {
    this.#release?.();
    this.#release = undefined;
  }
}
