// All that is wanted of one type from a management server that is asked by HTTP: one question for all who want some of it, again and
// again, and at once when somebody wants what has not been asked for. Main thread.
//
//   IDLE ──wanted──► DUE ──► ASKING ──answer──► TAKING ──► WAITING ──time over, wanted──► DUE
//                     ▲         └──none, or nothing new─────►┘
//
// A question says the version that was accepted last, and a server that has no other may answer 304; one for newcomers says none, since
// they have nothing yet. After a failure there is a pause that grows up to the usual one.

import type { Clock } from '../../../base/clock.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import { type Random, SYSTEM_RANDOM } from '../../../base/random.ts';
import { openTextResponse, requestNames, stateRequestText } from '../../../config/exchange.ts';
import type { DiscoveryService, NodeMessage, RawResponse, UnknownFieldPolicy } from '../../../config/index.ts';
import type { Logger } from '../../../log/index.ts';
import type { RestSourceSettings } from '../../../snapshot/index.ts';
import type { ActiveCluster } from '../../cluster-manager/active-cluster.ts';
import { labelOf } from '../../grpc/cluster-connection.ts';
import { HostRotation } from '../../stat-sinks/host-rotation.ts';
import { Complaint } from '../complaint.ts';
import { refusalText } from '../management-server/refusal-text.ts';
import type { RequestGate } from '../management-server/request-gate.ts';
import { WatchedType } from '../management-server/watched-type.ts';
import { ConnectionRecord, type SourceReport } from '../source-report.ts';
import type { Subscription, SubscriptionRequest } from '../subscription.ts';
import { type RestAnswer, RestClient, type RestClientDependencies } from './rest-client.ts';

export interface RestPollDependencies extends RestClientDependencies {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  readonly unknownFields: UnknownFieldPolicy;
  readonly gate: RequestGate;
  readonly node: NodeMessage;
  readonly cluster: (name: string) => ActiveCluster | undefined;
  readonly random?: Random;
  /** Asks hosts; one of its own when absent. */
  readonly client?: Pick<RestClient, 'ask' | 'close'>;
}

/** As loggers know this file. */

const HTTP_OK = 200;
const HTTP_NOT_MODIFIED = 304;
const FIRST_PAUSE_MS = 500;
/** A cluster that warms is there soon. */
const ABSENT_PAUSE_MS = 50;

interface Asked {
  /** Of the host. */
  readonly label: string;
  readonly names: ReadonlySet<string>;
  /** Without a version: the server is to say all of it. */
  readonly isAfresh: boolean;
}

/** What a server is told of the last response. */
interface Answered {
  readonly nonce: string;
  /** Undefined where it is accepted. */
  readonly refusal: string | undefined;
}

/** What has been accepted last. */
interface Accepted {
  readonly version: string;
  /** Those that were asked for. */
  readonly names: ReadonlySet<string>;
  /** Undefined where the same answer would say more again. */
  readonly fingerprint: string | undefined;
}

const NOTHING: Accepted = { version: '', names: new Set(), fingerprint: undefined };

export class RestPoll {
  readonly #settings: RestSourceSettings;
  readonly #service: DiscoveryService;
  readonly #typeUrl: string;
  readonly #path: string;
  readonly #deps: RestPollDependencies;
  readonly #random: Random;
  readonly #watched: WatchedType;
  readonly #client: Pick<RestClient, 'ask' | 'close'>;
  readonly #rotation = new HostRotation();
  readonly #complaint: Complaint;
  readonly #record: ConnectionRecord;
  #state: 'idle' | 'due' | 'asking' | 'taking' | 'waiting' = 'idle';
  /** Somebody has come for whom nothing has been asked yet. */
  #hasNewcomers = false;
  #accepted = NOTHING;
  #answered: Answered = { nonce: '', refusal: undefined };
  /** Failures in a row. */
  #failures = 0;
  #endWait = (): void => {};
  #isClosed = false;

  /** @param generation of the names that resources are asked for by. */
  constructor(
    settings: RestSourceSettings,
    service: DiscoveryService,
    generation: 'v2' | 'v3',
    deps: RestPollDependencies,
  ) {
    this.#settings = settings;
    this.#service = service;
    this.#typeUrl = service.typeUrl[generation] || service.typeUrl.v3;
    this.#path = service.restPath[settings.transportGeneration] || service.restPath.v3;
    this.#deps = deps;
    this.#random = deps.random ?? SYSTEM_RANDOM;
    const server = (): string => `management server ${settings.cluster}`;
    this.#watched = new WatchedType('state', service.isWildcard, { ...deps, server });
    this.#client = deps.client ?? new RestClient(deps);
    this.#complaint = new Complaint(deps.log);
    this.#record = new ConnectionRecord(deps.clock);
  }

  /** @returns one that is still to be started. */
  subscribe<Resource>(request: SubscriptionRequest<Resource>): Subscription {
    const watch = request as unknown as SubscriptionRequest<unknown>;
    return {
      start: () => {
        this.#watched.add(watch);
        this.#wanted();
      },
      close: () => this.#watched.remove(watch),
    };
  }

  report(): SourceReport {
    const types = [this.#watched.report(this.#service.typeName)];
    const { cluster: name } = this.#settings;
    return { kind: 'polls', name, complaint: this.#complaint.text, types, ...this.#record.report() };
  }

  /** Nothing is asked or told any more. */
  close(): void {
    this.#isClosed = true;
    this.#endWait();
    this.#client.close();
    this.#watched.close();
  }

  #wanted(): void {
    this.#hasNewcomers = true;
    if (this.#state === 'idle' || this.#state === 'waiting') this.#askSoon();
  }

  /** In a moment, with the names of all who come in it. */
  #askSoon(): void {
    this.#endWait();
    this.#state = 'due';
    this.#deps.gate.whenOpen(() => this.#ask());
  }

  #ask(): void {
    if (this.#isClosed) return;
    if (this.#watched.isEmpty) {
      this.#state = 'idle';
      return;
    }
    const { cluster: name, requestTimeoutMs } = this.#settings;
    const cluster = this.#deps.cluster(name);
    const host = cluster && this.#rotation.nextHost(cluster);
    if (cluster === undefined) {
      this.#complaint.say(`management server: cluster ${name} is not there yet`);
      this.#wait(ABSENT_PAUSE_MS);
      return;
    }
    if (host === undefined) {
      this.#failed(`cluster ${name} has no host`);
      return;
    }
    const names = new Set(this.#watched.isWildcard ? [] : this.#watched.names);
    const isAfresh = this.#hasNewcomers || !names.isSubsetOf(this.#accepted.names);
    const asked: Asked = { label: labelOf(cluster, host), names, isAfresh };
    const body = Buffer.from(this.#question(asked));
    this.#state = 'asking';
    this.#hasNewcomers = false;
    const question = { path: this.#path, body };
    this.#client.ask(cluster, host, question, requestTimeoutMs, (answer) => this.#heard(asked, answer));
  }

  #question({ names, isAfresh }: Asked): string {
    return stateRequestText({
      typeUrl: this.#typeUrl,
      version: isAfresh ? '' : this.#accepted.version,
      names: requestNames(names),
      ...this.#answered,
      node: this.#deps.node,
    });
  }

  #heard(asked: Asked, answer: RestAnswer): void {
    if (answer.kind === 'answered' && answer.status === HTTP_OK) {
      this.#read(asked, answer);
      return;
    }
    if (answer.kind === 'answered' && answer.status === HTTP_NOT_MODIFIED) {
      this.#watched.unchanged();
      this.#isWell();
      return;
    }
    this.#hasNewcomers ||= asked.isAfresh;
    this.#failed(`${asked.label}: ${answer.kind === 'failed' ? answer.reason : `HTTP ${answer.status}`}`);
  }

  #read(asked: Asked, { body, fingerprint }: Extract<RestAnswer, { readonly kind: 'answered' }>): void {
    if (!asked.isAfresh && this.#accepted.fingerprint === fingerprint) {
      this.#watched.repeated();
      this.#isWell();
      return;
    }
    const { log, unknownFields } = this.#deps;
    const response = openTextResponse(body, this.#service, unknownFields);
    if ('faults' in response) {
      this.#complaint.say(`management server ${asked.label}: an answer cannot be read: ${response.faults.join('; ')}`);
      this.#watched.unreadable(`an answer cannot be read: ${response.faults.join('; ')}`);
      this.#record.connected(true);
      this.#hasNewcomers ||= asked.isAfresh;
      this.#failures = 0;
      this.#wait(this.#usualMs());
      return;
    }
    for (const warning of response.warnings) log.warning(warning);
    this.#record.identified(response.controlPlane);
    this.#take(response, asked.names, fingerprint);
  }

  #take(response: RawResponse, names: ReadonlySet<string>, fingerprint: string): void {
    const { faults, gate } = this.#deps;
    const { version, nonce } = response;
    this.#state = 'taking';
    const release = gate.hold();
    faults.run('taking in an answer of a management server', async () => {
      try {
        const taken = await this.#watched.take(response, Promise.resolve());
        // Nothing is asked before it has been taken in.
        if (taken === undefined) return;
        const { read, refusals } = taken;
        const refusal = refusalText(refusals);
        const livesOn = read.resources.every(({ ttlMs }) => ttlMs === undefined);
        this.#answered = { nonce, refusal };
        if (refusal === undefined) this.#accepted = { version, names, fingerprint: livesOn ? fingerprint : undefined };
      } finally {
        release();
        this.#isWell();
      }
    });
  }

  /** The server has answered. */
  #isWell(): void {
    this.#complaint.end();
    this.#record.connected(true);
    this.#failures = 0;
    if (this.#hasNewcomers) this.#askSoon();
    else this.#wait(this.#usualMs());
  }

  #failed(reason: string): void {
    this.#complaint.say(`management server ${reason}`);
    this.#record.connected(false);
    this.#watched.lost();
    this.#failures += 1;
    this.#wait(this.#pauseMs());
  }

  #usualMs(): number {
    const { refreshDelayMs } = this.#settings;
    return refreshDelayMs + (this.#random.u32() % refreshDelayMs);
  }

  /** Whoever fails for long is asked no more often than one who does not. */
  #pauseMs(): number {
    const { refreshDelayMs } = this.#settings;
    const boundMs = FIRST_PAUSE_MS * 2 ** (this.#failures - 1);
    return boundMs < refreshDelayMs ? Math.max(1, this.#random.u32() % boundMs) : this.#usualMs();
  }

  #wait(delayMs: number): void {
    if (this.#isClosed) return;
    this.#state = 'waiting';
    this.#endWait = this.#deps.clock.after(delayMs, () => this.#askSoon());
  }
}
