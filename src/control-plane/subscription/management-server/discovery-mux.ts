// All that is wanted from one management server, of one type or of all, over one stream to it: who wants what, the exchange of each
// type, and the requests that are due. Main thread.
//
//   subscriptions ──▶ WatchedType ◀── names ── Exchange ── requests ──▶ ServerLink ──▶ server
//        ▲                └──────── refusals ───▶ ▲                          │
//        └─────── resources ────────────── responses ◀────────────────────────┘

import type { Clock } from '../../../base/clock.ts';
import { errorMessage } from '../../../base/errors.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import { openChangesResponse, openStateResponse } from '../../../config/exchange.ts';
import {
  AGGREGATED_SERVICE,
  DISCOVERY_SERVICES,
  type DiscoveryService,
  type NodeMessage,
  type RawResponse,
  type UnknownFieldPolicy,
} from '../../../config/index.ts';
import type { Logger } from '../../../log/index.ts';
import type { GrpcSourceSettings } from '../../../snapshot/index.ts';
import { Complaint } from '../complaint.ts';
import type { ControlPlaneStats } from '../control-plane-stats.ts';
import { ConnectionRecord, type SourceReport } from '../source-report.ts';
import type { Subscription, SubscriptionRequest } from '../subscription.ts';
import { ChangesExchange } from './changes-exchange.ts';
import { refusalText } from './refusal-text.ts';
import type { RequestGate } from './request-gate.ts';
import { RequestRate } from './request-rate.ts';
import { RequestRest } from './request-rest.ts';
import { ServerLink, type ServerLinkDependencies } from './server-link.ts';
import { StateExchange } from './state-exchange.ts';
import { subscribeTo, type WantedType } from './type-subscription.ts';
import { WatchedType } from './watched-type.ts';

export interface DiscoveryMuxDependencies extends ServerLinkDependencies {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  readonly unknownFields: UnknownFieldPolicy;
  readonly gate: RequestGate;
  readonly node: NodeMessage;
  /** Under the prefix of whose stream it is. */
  readonly stats: ControlPlaneStats;
}

interface TypeExchange extends WantedType {
  readonly rest: RequestRest;
}

/** As loggers know this file. */
const FILE = 'src/control-plane/subscription/management-server/discovery-mux.ts';

/** A server that does not wait for answers is not read until so many of its responses are taken in. */
const MOST_RESPONSES = 32;

export class DiscoveryMux {
  readonly #settings: GrpcSourceSettings;
  readonly #deps: DiscoveryMuxDependencies;
  readonly #link: ServerLink;
  readonly #types = new Map<DiscoveryService, TypeExchange>();
  readonly #rate: RequestRate | undefined;
  readonly #record: ConnectionRecord;
  /** Of responses that cannot be read. */
  readonly #complaint: Complaint;
  #isStarted = false;
  #hasSaidNode = false;
  #isWaiting = false;
  #endWait = (): void => {};
  /** Responses on their way in, of this stream. */
  #responses = 0;

  /** @param service undefined for the stream of all types. */
  constructor(settings: GrpcSourceSettings, service: DiscoveryService | undefined, deps: DiscoveryMuxDependencies) {
    this.#settings = settings;
    this.#deps = deps;
    const { clock } = deps;
    const { servers, form, transportGeneration, rateLimit } = settings;
    this.#rate = rateLimit && new RequestRate(rateLimit, clock);
    this.#record = new ConnectionRecord(clock);
    this.#complaint = new Complaint(deps.log);
    const { path, streamMethod, deltaMethod } = service ?? AGGREGATED_SERVICE;
    const method = form === 'state' ? streamMethod : deltaMethod;
    this.#link = new ServerLink(servers, path[transportGeneration] + method, deps, {
      onOpen: () => this.#opened(),
      onMessage: (bytes) => this.#heard(bytes),
      onLost: () => this.#lost(),
    });
  }

  /** @returns one that is still to be started. */
  subscribe<Resource>(service: DiscoveryService, request: SubscriptionRequest<Resource>): Subscription {
    const type = this.#typeOf(service, request.source.resourceGeneration);
    const onStart = (): void => this.#start();
    const onDue = (): void => this.#sayLater();
    return subscribeTo(type, request, onStart, onDue);
  }

  report(): SourceReport {
    const types = [...this.#types].map(([{ typeName }, { watched }]) => watched.report(typeName));
    const complaint = this.#link.complaint || this.#complaint.text;
    return { kind: 'stream', name: this.#link.server, complaint, types, ...this.#record.report() };
  }

  /** Nothing is asked or told any more. */
  close(): void {
    this.#link.close();
    this.#endWait();
    for (const { watched } of this.#types.values()) watched.close();
  }

  #typeOf(service: DiscoveryService, generation: 'v2' | 'v3'): TypeExchange {
    const known = this.#types.get(service);
    if (known !== undefined) return known;
    const { clock, faults, log, unknownFields } = this.#deps;
    const { form } = this.#settings;
    const server = (): string => `management server ${this.#link.server}`;
    const typeDeps = { clock, faults, log, unknownFields, server };
    const watched = new WatchedType(form, service.isWildcard, typeDeps, service.hasLongNames);
    const type = { service, typeUrl: service.typeUrl[generation] || service.typeUrl.v3 };
    const exchange = form === 'state' ? new StateExchange(type, watched) : new ChangesExchange(type, watched);
    const made = { watched, exchange, rest: new RequestRest(clock) };
    this.#types.set(service, made);
    return made;
  }

  #start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#link.start();
  }

  #opened(): void {
    this.#responses = 0;
    this.#hasSaidNode = false;
    this.#deps.stats.connected(true);
    this.#record.connected(true);
    for (const { exchange } of this.#types.values()) exchange.begin();
    this.#sayLater();
  }

  #lost(): void {
    const { stats } = this.#deps;
    stats.connected(false);
    this.#record.connected(false);
    stats.pending(0);
    for (const { watched } of this.#types.values()) watched.lost();
  }

  #sayLater(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#deps.gate.whenOpen(() => {
      this.#isWaiting = false;
      this.#say();
    });
  }

  /** Types that lead to others come first. */
  #say(): void {
    this.#endWait();
    if (!this.#link.isOpen) return;
    const { clock, stats } = this.#deps;
    const types = DISCOVERY_SERVICES.flatMap((service) => this.#types.get(service) ?? []);
    const due = types.filter(({ exchange }) => exchange.isDue);
    let restMs = 0;
    for (const [at, { exchange, rest }] of due.entries()) {
      const remainingMs = exchange.canWait ? rest.remainingMs : 0;
      if (remainingMs > 0) {
        restMs = Math.max(restMs, remainingMs);
        continue;
      }
      while (exchange.isDue) {
        const waitMs = this.#rate?.take() ?? 0;
        if (waitMs > 0) {
          stats.limited(due.length - at);
          this.#endWait = clock.after(waitMs, () => this.#say());
          return;
        }
        const request = exchange.next(this.#nodeToSay());
        rest.noteSent(request.length);
        this.#link.send(request);
      }
    }
    stats.pending(0);
    if (restMs > 0) this.#endWait = clock.after(restMs, () => this.#say());
  }

  #nodeToSay(): NodeMessage | undefined {
    if (this.#hasSaidNode && this.#settings.nodeOnFirstMessageOnly) return undefined;
    this.#hasSaidNode = true;
    return this.#deps.node;
  }

  #heard(bytes: Buffer): void {
    const response = this.#open(bytes);
    const type = response?.service && this.#types.get(response.service);
    if (response === undefined) return;
    this.#deps.stats.identified(response.controlPlane);
    this.#record.identified(response.controlPlane);
    if (type === undefined || type.watched.isEmpty) {
      this.#record.unasked(response.typeUrl);
      const log = this.#deps.log.ofFile(FILE);
      log.debug(`management server ${this.#link.server}: nobody has asked for ${response.typeUrl}`);
      return;
    }
    this.#take(type, response);
  }

  #open(bytes: Buffer): RawResponse | undefined {
    try {
      const response = this.#settings.form === 'state' ? openStateResponse(bytes) : openChangesResponse(bytes);
      this.#complaint.end();
      return response;
    } catch (error) {
      const reason = `a response cannot be read: ${errorMessage(error)}`;
      this.#complaint.say(`management server ${this.#link.server}: ${reason}`);
      const [{ watched: first } = {}, ...others] = [...this.#types.values()];
      if (others.length === 0) first?.unreadable(reason);
      // Which of them it was for, nobody can say.
      else for (const { watched } of this.#types.values()) watched.lost();
      return undefined;
    }
  }

  /** All others may name clusters that have come before them; those wait for nobody. */
  #clustersOfBefore(watched: WatchedType): Promise<void> {
    const clusters = this.#types.get(DISCOVERY_SERVICES[0]!)?.watched;
    return clusters === undefined || clusters === watched ? Promise.resolve() : clusters.idle;
  }

  #take({ watched, exchange }: TypeExchange, response: RawResponse): void {
    const { faults, gate } = this.#deps;
    const generation = this.#link.generation;
    exchange.taking(response);
    this.#responses += 1;
    if (this.#responses === MOST_RESPONSES) this.#link.pause(true);
    const release = gate.hold();
    faults.run('taking in a response of a management server', async () => {
      try {
        const taken = await watched.take(response, this.#clustersOfBefore(watched));
        const isOver = generation !== this.#link.generation;
        if (taken === undefined) exchange.overtaken(isOver);
        else exchange.taken(taken.read, refusalText(taken.refusals), isOver);
      } finally {
        release();
        if (generation === this.#link.generation) {
          this.#responses -= 1;
          if (this.#responses === MOST_RESPONSES - 1) this.#link.pause(false);
          this.#sayLater();
        }
      }
    });
  }
}
