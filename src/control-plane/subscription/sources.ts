// From where a configuration source says that resources come, to what brings them. Owns the streams to management servers. Main
// thread.

import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { type DiscoveryService, discoveryService, type UnknownFieldPolicy } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { FileSourceSettings, GrpcSourceSettings, RestSourceSettings } from '../../snapshot/index.ts';
import type { StatsStore } from '../../stats/index.ts';
import { FileSource } from './file-source.ts';
import { FileSubscription } from './file-subscription.ts';
import type { FileWatches } from './file-watches.ts';
import type { DiscoveryMux } from './management-server/discovery-mux.ts';
import { RequestGate } from './management-server/request-gate.ts';
import type { ServerLinkDependencies } from './management-server/server-link.ts';
import { ResponseReader, startResponseThread } from './response-reader.ts';
import type { RestPoll, RestPollDependencies } from './rest-server/rest-poll.ts';
import type { SourceReport } from './source-report.ts';
import type { Subscription, SubscriptionRequest, Subscriptions } from './subscription.ts';

export interface SourcesDependencies extends ServerLinkDependencies {
  readonly unknownFields: UnknownFieldPolicy;
  readonly log: Logger;
  readonly faults: FaultBoundary;
  readonly stats: Pick<StatsStore, 'scope'>;
  readonly watches: Pick<FileWatches, 'follow'>;
  /** The stream of sources that name no other; undefined where there is none. */
  readonly aggregated: GrpcSourceSettings | undefined;
  /** The bootstrap in its binary form, whose node is told to servers. */
  readonly bootstrap: Uint8Array;
  /** What servers of the older interface are told of the program. */
  readonly buildVersion: string;
  /** Flags of Node for threads; those of the process when undefined. */
  readonly threadFlags: readonly string[] | undefined;
}

/** Loaded when the first server is to be asked. */
type AtNeed = typeof import('../at-need.ts');

export class Sources implements Subscriptions {
  readonly #deps: SourcesDependencies;
  readonly #gate: RequestGate;
  readonly #reader: ResponseReader;
  #code: Promise<AtNeed> | undefined;
  /** Of servers that are asked by HTTP; undefined before the first. */
  #codec: RestPollDependencies['codec'] | undefined;
  /** By path and folder, and how they are watched: those that somebody asks. */
  readonly #files = new Map<string, FileSource>();
  /** By what they ask, and whom. */
  readonly #muxes = new Map<string, DiscoveryMux>();
  readonly #polls = new Map<string, RestPoll>();
  #isClosed = false;

  constructor(deps: SourcesDependencies) {
    this.#deps = deps;
    this.#gate = new RequestGate(deps.clock);
    this.#reader = new ResponseReader({ ...deps, startThread: () => startResponseThread(deps.threadFlags) });
  }

  subscribe<Resource>(request: SubscriptionRequest<Resource>): Subscription {
    const { origin } = request.source;
    if (origin.kind === 'file') return this.#toFile(origin, request);
    const service = discoveryService(request.type().typeName);
    const { aggregated } = this.#deps;
    // A source that says so without such a stream is refused when it is read.
    if (origin.kind === 'ads') return this.#toServer(aggregated!, undefined, service, request);
    if (origin.kind === 'rest') return this.#toRestServer(origin, service, request);
    return this.#toServer(origin, service, service, request);
  }

  /** Those that anybody asks, servers first. */
  *reports(): Generator<SourceReport> {
    for (const sources of [this.#muxes, this.#polls, this.#files])
      for (const source of sources.values()) yield source.report();
  }

  #toFile<Resource>(settings: FileSourceSettings, request: SubscriptionRequest<Resource>): Subscription {
    const { log, faults } = this.#deps;
    const { path, watchedFolder } = settings;
    const { followsWrites = false } = request;
    const key = `${path}\0${watchedFolder ?? ''}\0${followsWrites}`;
    const deps = { ...this.#deps, reader: this.#reader };
    const source = this.#files.get(key) ?? new FileSource(settings, followsWrites, deps);
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
    for (const poll of this.#polls.values()) poll.close();
    this.#reader.close();
  }

  /** @param of the type that the stream is for; undefined for that of all. */
  #toServer<Resource>(
    settings: GrpcSourceSettings,
    of: DiscoveryService | undefined,
    service: DiscoveryService,
    request: SubscriptionRequest<Resource>,
  ): Subscription {
    return this.#later(async () => this.#muxOf(settings, of, await this.#load()).subscribe(service, request));
  }

  #toRestServer<Resource>(
    settings: RestSourceSettings,
    service: DiscoveryService,
    request: SubscriptionRequest<Resource>,
  ): Subscription {
    return this.#later(async () => this.#pollOf(settings, service, request, await this.#load()).subscribe(request));
  }

  /** @param subscribe when what it needs has been loaded. */
  #later(subscribe: () => Promise<Subscription>): Subscription {
    const { faults } = this.#deps;
    let subscription: Subscription | undefined;
    let isWanted = false;
    const asked = new Set<string>();
    return {
      ask: (name) => {
        asked.add(name);
        subscription?.ask?.(name);
      },
      unask: (name) => {
        asked.delete(name);
        subscription?.unask?.(name);
      },
      start: () => {
        isWanted = true;
        faults.run('asking a management server', async () => {
          const subscribed = await subscribe();
          if (!isWanted || this.#isClosed) return;
          subscription = subscribed;
          subscription.start();
          for (const name of asked) subscription.ask?.(name);
        });
      },
      close: () => {
        isWanted = false;
        subscription?.close();
        subscription = undefined;
      },
    };
  }

  #load(): Promise<AtNeed> {
    this.#code ??= import('../at-need.ts');
    return this.#code;
  }

  #muxOf(
    settings: GrpcSourceSettings,
    of: DiscoveryService | undefined,
    { DiscoveryMux, ControlPlaneStats, nodeMessage }: AtNeed,
  ): DiscoveryMux {
    const key = JSON.stringify([of?.typeName ?? null, settings]);
    const known = this.#muxes.get(key);
    if (known !== undefined) return known;
    const node = nodeMessage(this.#deps.bootstrap, this.#versionFor(settings.transportGeneration));
    const stats = new ControlPlaneStats(this.#deps.stats, of?.statPrefix ?? '');
    const mux = new DiscoveryMux(settings, of, { ...this.#deps, gate: this.#gate, node, stats });
    this.#muxes.set(key, mux);
    return mux;
  }

  /** All who ask the same for resources of one type share it. */
  #pollOf(
    settings: RestSourceSettings,
    service: DiscoveryService,
    { source: { resourceGeneration } }: Pick<SubscriptionRequest<unknown>, 'source'>,
    { RestPoll, Http1Codec, compileHttp1, nodeMessage }: AtNeed,
  ): RestPoll {
    const key = JSON.stringify([service.typeName, resourceGeneration, settings]);
    const known = this.#polls.get(key);
    if (known !== undefined) return known;
    const node = nodeMessage(this.#deps.bootstrap, this.#versionFor(settings.transportGeneration));
    this.#codec ??= new Http1Codec(compileHttp1());
    const codec = this.#codec;
    const poll = new RestPoll(settings, service, resourceGeneration, { ...this.#deps, gate: this.#gate, node, codec });
    this.#polls.set(key, poll);
    return poll;
  }

  /** What a server is told of the program. */
  #versionFor(generation: 'v2' | 'v3'): string | undefined {
    return generation === 'v2' ? this.#deps.buildVersion : undefined;
  }
}
