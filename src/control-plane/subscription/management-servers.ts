// The management servers that resources come from: one stream or one question for all who want the same of the same. Its code, and all that
// speaks with them, is loaded when the first is to be asked. Main thread.

import { nodeMessage } from '../../config/exchange.ts';
import {
  type DiscoveryService,
  discoveryService,
  type NodeMessage,
  type UnknownFieldPolicy,
} from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ConfigSourceSettings, GrpcSourceSettings, RestSourceSettings } from '../../snapshot/index.ts';
import type { StatsStore } from '../../stats/index.ts';
import { compileHttp1, Http1Codec } from '../../wasm/http1.ts';
import { ControlPlaneStats } from './control-plane-stats.ts';
import { DiscoveryMux } from './management-server/discovery-mux.ts';
import { RequestGate } from './management-server/request-gate.ts';
import type { ServerLinkDependencies } from './management-server/server-link.ts';
import { RestPoll } from './rest-server/rest-poll.ts';
import type { SourceReport } from './source-report.ts';
import type { Subscription, SubscriptionRequest } from './subscription.ts';

export interface ManagementServersDependencies extends ServerLinkDependencies {
  readonly unknownFields: UnknownFieldPolicy;
  readonly log: Logger;
  readonly stats: Pick<StatsStore, 'scope'>;
  /** The stream of sources that name no other; undefined where there is none. */
  readonly aggregated: GrpcSourceSettings | undefined;
  /** The bootstrap in its binary form, whose node is told to servers. */
  readonly bootstrap: Uint8Array;
  /** What servers of the older interface are told of the program. */
  readonly buildVersion: string;
}

/** What resources of a server say of where they come from. */
export type ServerOrigin = Exclude<ConfigSourceSettings['origin'], { readonly kind: 'file' }>;

export class ManagementServers {
  readonly #deps: ManagementServersDependencies;
  readonly #gate: RequestGate;
  /** Of servers that are asked by HTTP; undefined before the first. */
  #codec: Http1Codec | undefined;
  /** By what they ask, and whom. */
  readonly #muxes = new Map<string, DiscoveryMux>();
  readonly #polls = new Map<string, RestPoll>();

  constructor(deps: ManagementServersDependencies) {
    this.#deps = deps;
    this.#gate = new RequestGate(deps.clock);
  }

  /** @param origin of the request. @returns one that is still to be started. */
  subscribe<Resource>(origin: ServerOrigin, request: SubscriptionRequest<Resource>): Subscription {
    const service = discoveryService(request.type().typeName);
    if (origin.kind === 'rest') return this.#pollOf(origin, service, request).subscribe(request);
    // A source that says so without such a stream is refused when it is read.
    if (origin.kind === 'ads') return this.#muxOf(this.#deps.aggregated!, undefined).subscribe(service, request);
    return this.#muxOf(origin, service).subscribe(service, request);
  }

  /** Those that anybody asks. */
  *reports(): Generator<SourceReport> {
    for (const sources of [this.#muxes, this.#polls]) for (const source of sources.values()) yield source.report();
  }

  /** Streams end, and nothing is told any more. */
  close(): void {
    for (const mux of this.#muxes.values()) mux.close();
    for (const poll of this.#polls.values()) poll.close();
  }

  /** @param of the type that the stream is for; undefined for that of all. */
  #muxOf(settings: GrpcSourceSettings, of: DiscoveryService | undefined): DiscoveryMux {
    const key = JSON.stringify([of?.typeName ?? null, settings]);
    const known = this.#muxes.get(key);
    if (known !== undefined) return known;
    const stats = new ControlPlaneStats(this.#deps.stats, of?.statPrefix ?? '');
    const node = this.#nodeFor(settings.transportGeneration);
    const mux = new DiscoveryMux(settings, of, { ...this.#deps, gate: this.#gate, node, stats });
    this.#muxes.set(key, mux);
    return mux;
  }

  /** All who ask the same for resources of one type share it. */
  #pollOf(
    settings: RestSourceSettings,
    service: DiscoveryService,
    { source: { resourceGeneration } }: Pick<SubscriptionRequest<unknown>, 'source'>,
  ): RestPoll {
    const key = JSON.stringify([service.typeName, resourceGeneration, settings]);
    const known = this.#polls.get(key);
    if (known !== undefined) return known;
    this.#codec ??= new Http1Codec(compileHttp1());
    const codec = this.#codec;
    const node = this.#nodeFor(settings.transportGeneration);
    const poll = new RestPoll(settings, service, resourceGeneration, { ...this.#deps, gate: this.#gate, node, codec });
    this.#polls.set(key, poll);
    return poll;
  }

  /** What a server is told of this process. */
  #nodeFor(generation: 'v2' | 'v3'): NodeMessage {
    const { bootstrap, buildVersion } = this.#deps;
    return nodeMessage(bootstrap, generation === 'v2' ? buildVersion : undefined);
  }
}
