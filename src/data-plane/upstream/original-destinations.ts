// The hosts of an ORIGINAL_DST cluster in this worker: requests name theirs, and no balancer chooses. A host that is not
// there yet is asked of main, which makes it for all workers; those who want it meanwhile share the question.
//
//   unknown ──wanted──► ASKED ──main publishes the host──► known ──unused for a while: main takes it back──► unknown
//                         └──main has no room, or says nothing in time: no host───────────────────────────────►┘
//
// Main answers a question by publishing the host, or not at all where it has done so before: messages keep their order, so
// the host is on its way then. Why hosts are made by main: docs/decisions/0026-hosts-on-demand-are-made-by-main.md.

import { formatAddress, type IpAddress, parseIpAddress } from '../../base/address.ts';
import type { OriginalDstSettings } from '../../snapshot/index.ts';
import { CLUSTER_STATS } from '../../stats/index.ts';
import type { Endpoint } from '../format/facts.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import { firstValueReader, type ReadHeader } from '../route/header-matcher.ts';
import type { RouteRequest } from '../route/route-request.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import { contextFor, type PickContext } from './load-balancer/pick-context.ts';

const { original_dst_host_invalid, original_dst_host_overflow, upstream_rq_pending_overflow } = CLUSTER_STATS.index;

/** A request or connection that wants a host; it is told one of both, perhaps before `choose` returns. */
export interface HostUser<Host> {
  onHost(host: Host): void;
  /** `none`: nobody has said where to go, or there was no answer; `overflow`: a limit leaves no room. */
  onNoHost(reason: 'none' | 'overflow'): void;
}

/** The cluster, as its destinations see it. */
export interface DestinationsOwner<Host> {
  readonly name: string;
  readonly statBase: number;
  readonly connectTimeoutMs: number;
  readonly settings: OriginalDstSettings;
  /** By its address as text. */
  host(key: string): Host | undefined;
}

/** Of one worker and cluster, at a time: what clients ask for, main has to deal with. */
const MAX_QUESTIONS = 1024;

export class OriginalDestinations<Host> {
  readonly #context: WorkerContext;
  readonly #owner: DestinationsOwner<Host>;
  /** By the address of the host. */
  readonly #questions = new Map<string, Question<Host>>();
  /** Null where no header counts. */
  readonly #readHeader: ReadHeader | null;
  readonly #awaited = new Map<HostUser<Host>, Question<Host>>();

  constructor(context: WorkerContext, owner: DestinationsOwner<Host>) {
    this.#context = context;
    this.#owner = owner;
    const { header } = owner.settings;
    this.#readHeader = header === null ? null : firstValueReader(header);
  }

  /**
   * Where a request or connection goes: where its header says, else where its client meant to go. A header that says
   * nothing of use is counted, and does not count.
   * @param request null for a connection, which has no header. @param meant null when nobody knows.
   */
  contextOf(request: RouteRequest | null, meant: Endpoint | null): PickContext | null {
    const address = (request === null ? undefined : this.#fromHeader(request)) ?? meant;
    if (address === null) return null;
    const { port } = this.#owner.settings;
    return contextFor({ kind: 'ip', ip: address.ip, port: port === 0 ? address.port : port });
  }

  #fromHeader(request: RouteRequest): IpAddress | undefined {
    const text = this.#readHeader?.(request);
    if (text === undefined) return undefined;
    const address = parseIpAddress(text);
    if (address === undefined) this.#count(original_dst_host_invalid);
    return address;
  }

  /** Gives the user its host, now or when main has made it. */
  choose(request: PickContext | null, breaker: CircuitBreaker, user: HostUser<Host>): void {
    const destination = request?.destination ?? null;
    if (destination === null) {
      user.onNoHost('none');
      return;
    }
    const key = formatAddress(destination);
    const host = this.#owner.host(key);
    if (host !== undefined) {
      user.onHost(host);
      return;
    }
    if (!this.#questions.has(key) && this.#questions.size >= MAX_QUESTIONS) {
      this.#count(original_dst_host_overflow);
      user.onNoHost('overflow');
      return;
    }
    if (!breaker.tryAcquirePending()) {
      this.#count(upstream_rq_pending_overflow);
      user.onNoHost('overflow');
      return;
    }
    const question = this.#questions.get(key) ?? this.#ask(key, destination);
    question.users.set(user, breaker);
    this.#awaited.set(user, question);
  }

  /** The user does not wait any more. Its question goes on: others may come. */
  cancel(user: HostUser<Host>): void {
    const question = this.#awaited.get(user);
    if (question !== undefined) this.#release(question, user);
  }

  /** Hosts may have come: gives them to those who wait. */
  settle(): void {
    for (const [key, question] of [...this.#questions]) {
      const host = this.#owner.host(key);
      if (host !== undefined) this.#answer(question, (user) => user.onHost(host));
    }
  }

  /** Main has no room for a host. @param key its address as text. */
  refuse(key: string): void {
    const question = this.#questions.get(key);
    if (question === undefined) return;
    this.#count(original_dst_host_overflow);
    this.#answer(question, (user) => user.onNoHost('overflow'));
  }

  /** The cluster has gone. */
  close(): void {
    for (const question of [...this.#questions.values()]) this.#answer(question, (user) => user.onNoHost('none'));
  }

  #ask(key: string, destination: IpAddress): Question<Host> {
    const question = new Question<Host>(key, () => this.#answer(question, (user) => user.onNoHost('none')));
    this.#questions.set(key, question);
    const { clock, wheel, requestHost } = this.#context;
    wheel.arm(question.timer, clock.monotonicMs() + this.#owner.connectTimeoutMs);
    requestHost(this.#owner.name, destination);
    return question;
  }

  #answer(question: Question<Host>, tell: (user: HostUser<Host>) => void): void {
    this.#context.wheel.remove(question.timer);
    this.#questions.delete(question.key);
    // To be told may end others that wait: each is taken as it stands then.
    for (const user of question.users.keys()) {
      this.#release(question, user);
      tell(user);
    }
  }

  #release(question: Question<Host>, user: HostUser<Host>): void {
    question.users.get(user)!.releasePending();
    question.users.delete(user);
    this.#awaited.delete(user);
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#owner.statBase + stat]! += 1;
  }
}

/** Main has been asked for a host. */
class Question<Host> implements TimeoutOwner {
  readonly key: string;
  readonly timer = new TimerEntry(this);
  /** Who waits, with the limits that it waits under. */
  readonly users = new Map<HostUser<Host>, CircuitBreaker>();
  readonly onTimeout: () => void;

  constructor(key: string, onTimeout: () => void) {
    this.key = key;
    this.onTimeout = onTimeout;
  }
}
