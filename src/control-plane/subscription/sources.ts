// From where a configuration source says that resources come, to what brings them. Owns the streams to management servers. Main
// thread.

import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { type DiscoveryService, discoveryService, nodeMessage, type UnknownFieldPolicy } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { FileSourceSettings, GrpcSourceSettings } from '../../snapshot/index.ts';
import type { StatsStore } from '../../stats/index.ts';
import { FileSource } from './file-source.ts';
import { FileSubscription } from './file-subscription.ts';
import type { DiscoveryMux } from './management-server/discovery-mux.ts';
import type { RequestGate } from './management-server/request-gate.ts';
import type { ServerLinkDependencies } from './management-server/server-link.ts';
import type { Subscription, SubscriptionRequest, Subscriptions } from './subscription.ts';

export interface SourcesDependencies extends ServerLinkDependencies {
  readonly unknownFields: UnknownFieldPolicy;
  readonly log: Logger;
  readonly faults: FaultBoundary;
  readonly stats: Pick<StatsStore, 'scope'>;
  /** The stream of sources that name no other; undefined where there is none. */
  readonly aggregated: GrpcSourceSettings | undefined;
  /** The bootstrap in its binary form, whose node is told to servers. */
  readonly bootstrap: Uint8Array;
  /** What servers of the older interface are told of the program. */
  readonly buildVersion: string;
}

/** Loaded when the first management server is to be asked. */
interface ManagementServers {
  readonly DiscoveryMux: typeof DiscoveryMux;
  readonly gate: RequestGate;
  readonly ControlPlaneStats: typeof import('./control-plane-stats.ts').ControlPlaneStats;
}

export class Sources implements Subscriptions {
  readonly #deps: SourcesDependencies;
  #servers: Promise<ManagementServers> | undefined;
  /** By path and folder: those that somebody asks. */
  readonly #files = new Map<string, FileSource>();
  /** By what they ask, and whom. */
  readonly #muxes = new Map<string, DiscoveryMux>();
  #isClosed = false;

  constructor(deps: SourcesDependencies) {
    this.#deps = deps;
  }

  subscribe<Resource>(request: SubscriptionRequest<Resource>): Subscription {
    const { origin } = request.source;
    if (origin.kind === 'file') return this.#toFile(origin, request);
    const service = discoveryService(request.type().typeName);
    const { aggregated } = this.#deps;
    // A source that says so without such a stream is refused when it is read.
    if (origin.kind === 'ads') return this.#toServer(aggregated!, undefined, service, request);
    return this.#toServer(origin, service, service, request);
  }

  #toFile<Resource>(settings: FileSourceSettings, request: SubscriptionRequest<Resource>): Subscription {
    const { log, faults } = this.#deps;
    const { path, watchedFolder } = settings;
    const key = `${path}\0${watchedFolder ?? ''}`;
    const source = this.#files.get(key) ?? new FileSource(settings, this.#deps);
    this.#files.set(key, source);
    const onClosed = (): void => {
      if (!source.hasReaders && this.#files.get(key) === source) this.#files.delete(key);
    };
    return new FileSubscription(request, { source, path, log, faults, onClosed });
  }

  /** Streams end, and nothing is told any more. */
  close(): void {
    this.#isClosed = true;
    for (const mux of this.#muxes.values()) mux.close();
  }

  /** @param of the type that the stream is for; undefined for that of all. */
  #toServer<Resource>(
    settings: GrpcSourceSettings,
    of: DiscoveryService | undefined,
    service: DiscoveryService,
    request: SubscriptionRequest<Resource>,
  ): Subscription {
    const { faults } = this.#deps;
    let subscription: Subscription | undefined;
    let isWanted = false;
    return {
      start: () => {
        isWanted = true;
        faults.run('asking a management server', async () => {
          const mux = this.#muxOf(settings, of, await this.#load());
          if (!isWanted || this.#isClosed) return;
          subscription = mux.subscribe(service, request);
          subscription.start();
        });
      },
      close: () => {
        isWanted = false;
        subscription?.close();
        subscription = undefined;
      },
    };
  }

  #load(): Promise<ManagementServers> {
    const load = async (): Promise<ManagementServers> => {
      const [{ DiscoveryMux }, { RequestGate }, { ControlPlaneStats }] = await Promise.all([
        import('./management-server/discovery-mux.ts'),
        import('./management-server/request-gate.ts'),
        import('./control-plane-stats.ts'),
      ]);
      return { DiscoveryMux, gate: new RequestGate(this.#deps.clock), ControlPlaneStats };
    };
    this.#servers ??= load();
    return this.#servers;
  }

  #muxOf(
    settings: GrpcSourceSettings,
    of: DiscoveryService | undefined,
    { DiscoveryMux, gate, ControlPlaneStats }: ManagementServers,
  ): DiscoveryMux {
    const key = JSON.stringify([of?.typeName ?? null, settings]);
    const known = this.#muxes.get(key);
    if (known !== undefined) return known;
    const { bootstrap, buildVersion } = this.#deps;
    const node = nodeMessage(bootstrap, settings.transportGeneration === 'v2' ? buildVersion : undefined);
    const stats = new ControlPlaneStats(this.#deps.stats, of?.statPrefix ?? '');
    const mux = new DiscoveryMux(settings, of, { ...this.#deps, gate, node, stats });
    this.#muxes.set(key, mux);
    return mux;
  }
}
