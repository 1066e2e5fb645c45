// The hosts of a cluster in this worker that requests name, and no balancer chooses. A host that is not there yet is asked of
// main, which makes it for all workers; those who want it meanwhile share the question.
//
//   unknown ──wanted──► ASKED ──main publishes the host──► known ──unused for a while: main takes it back──► unknown
//                         └──main refuses it, or says nothing in time: no host──────────────────────────────►┘
//
// Main answers a question by publishing the host, or not at all where it has done so before: messages keep their order, so
// the host is on its way then. Why hosts are made by main: docs/decisions/0026-hosts-on-demand-are-made-by-main.md.
//
// A host that has failed its checks or was ejected gets nothing, and nobody else gets it instead. A host that is known costs a
// request no allocation: what its picks are to know is made once, with the host.

import { type Address, formatAddress, type IpAddress } from '../../base/address.ts';
import type { HostRefusal, Metadata } from '../../snapshot/index.ts';
import { CLUSTER_STATS } from '../../stats/index.ts';
import type { Endpoint } from '../format/facts.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { RouteRequest } from '../route/route-request.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import { contextFor, type PickContext } from './load-balancer/pick-context.ts';

const { upstream_rq_pending_overflow } = CLUSTER_STATS.index;

/**
 * Why there is no host. `none`: nobody has said where to go, there was no answer, or the host is not healthy; `overflow`: a
 * limit leaves no room; `dns`: its name has no address.
 */
export type NoHostReason = 'none' | HostRefusal;

/** A request or connection that wants a host; it is told one of both, perhaps before `choose` returns. */
export interface HostUser<Host> {
  onHost(host: Host): void;
  onNoHost(reason: NoHostReason): void;
}

/** A host, as it is found by what requests name. */
export interface NamedHost {
  /** What requests name it by: its address, or a name in the place of the IP. */
  readonly destination: Address;
  /** The same as text. */
  readonly key: string;
  /** It has failed its checks, or was ejected. */
  readonly isUnhealthy: boolean;
  /** Somebody has wanted it, and was turned away: main keeps it, and with it what is known of its health. */
  noteWanted(): void;
}

/** What a connection says of where its client wants to go. */
export interface MeantDestination {
  /** Null when nobody knows. */
  readonly originalDestination: Endpoint | null;
  /** By SNI; empty without. */
  readonly requestedServerName: string;
  /** What network filters have said of the connection. */
  readonly metadata?: Metadata | undefined;
  /** The same in filter state. */
  state?(key: string): string | undefined;
}

/** The cluster, as its destinations see it. */
export interface DestinationsOwner {
  readonly name: string;
  /** First cell of CLUSTER_STATS in this worker's slab. */
  readonly statBase: number;
  /** How long somebody waits for a host at most. */
  readonly waitMs: number;
}

/** Of one worker and cluster, at a time: what clients ask for, main has to deal with. */
const MAX_QUESTIONS = 1024;

/** A limit that who waits for a host stands under, beside that of the cluster. */
export interface WaitingLimit {
  tryAcquire(): boolean;
  release(): void;
}

export abstract class Destinations<Host extends NamedHost> {
  protected readonly context: WorkerContext;
  readonly #owner: DestinationsOwner;
  readonly #limit: WaitingLimit | null;
  /** By port and IP or name. */
  readonly #byPort = new Map<number, Map<string, KnownHost<Host>>>();
  /** By what requests name them. */
  readonly #questions = new Map<string, Question<Host>>();
  readonly #awaited = new Map<HostUser<Host>, Question<Host>>();

  /** @param limit null for that of the cluster alone. */
  constructor(context: WorkerContext, owner: DestinationsOwner, limit: WaitingLimit | null) {
    this.context = context;
    this.#owner = owner;
    this.#limit = limit;
  }

  /** Where a request or connection goes; null where nobody says. @param request null for a connection. Hot. */
  abstract contextOf(request: RouteRequest | null, meant: MeantDestination | null): PickContext | null;

  /** Gives the user its host, now or when main has made it. */
  choose(request: PickContext | null, breaker: CircuitBreaker, user: HostUser<Host>): void {
    const destination = request?.destination ?? null;
    if (destination === null) {
      user.onNoHost('none');
      return;
    }
    const known = this.#find(destination.ip, destination.port);
    if (known === undefined) this.#await(destination, breaker, user);
    else give(known.host, user);
  }

  /** The user does not wait any more. Its question goes on: others may come. */
  cancel(user: HostUser<Host>): void {
    const question = this.#awaited.get(user);
    if (question !== undefined) this.#release(question, user);
  }

  /** A host has come: those who wait for it get it. */
  add(host: Host): void {
    const { destination, key } = host;
    if (destination.kind !== 'ip') return;
    const { ip, port } = destination;
    const byIp = this.#byPort.get(port) ?? new Map<string, KnownHost<Host>>();
    this.#byPort.set(port, byIp.set(ip, { host, context: contextFor(destination) }));
    const question = this.#questions.get(key);
    if (question !== undefined) this.#answer(question, (user) => give(host, user));
  }

  /** A host has gone. */
  remove({ destination }: Host): void {
    if (destination.kind !== 'ip') return;
    const byIp = this.#byPort.get(destination.port);
    byIp?.delete(destination.ip);
    if (byIp?.size === 0) this.#byPort.delete(destination.port);
  }

  /** There is no such host. @param key what it was asked by, as text. */
  refuse(key: string, reason: HostRefusal): void {
    const question = this.#questions.get(key);
    if (question === undefined) return;
    if (reason === 'overflow') this.noteOverflow();
    this.#answer(question, (user) => user.onNoHost(reason));
  }

  /** The cluster has gone. */
  close(): void {
    for (const question of [...this.#questions.values()]) this.#answer(question, (user) => user.onNoHost('none'));
  }

  /** A host was wanted, and there is no room for it. */
  protected abstract noteOverflow(): void;

  protected contextAt(ip: string, port: number): PickContext {
    return this.#find(ip, port)?.context ?? contextFor({ kind: 'ip', ip, port });
  }

  protected count(stat: number): void {
    this.context.stats.values[this.#owner.statBase + stat]! += 1;
  }

  #find(ip: string, port: number): KnownHost<Host> | undefined {
    return this.#byPort.get(port)?.get(ip);
  }

  #await(destination: IpAddress, breaker: CircuitBreaker, user: HostUser<Host>): void {
    const key = formatAddress(destination);
    if (!this.#questions.has(key) && this.#questions.size >= MAX_QUESTIONS) {
      this.noteOverflow();
      user.onNoHost('overflow');
      return;
    }
    if (this.#limit?.tryAcquire() === false) {
      user.onNoHost('overflow');
      return;
    }
    if (!breaker.tryAcquirePending()) {
      this.#limit?.release();
      this.count(upstream_rq_pending_overflow);
      user.onNoHost('overflow');
      return;
    }
    const question = this.#questions.get(key) ?? this.#ask(key, destination);
    question.users.set(user, breaker);
    this.#awaited.set(user, question);
  }

  #ask(key: string, destination: IpAddress): Question<Host> {
    const question = new Question<Host>(key, () => this.#answer(question, (user) => user.onNoHost('none')));
    this.#questions.set(key, question);
    const { clock, wheel, requestHost } = this.context;
    wheel.arm(question.timer, clock.monotonicMs() + this.#owner.waitMs);
    requestHost(this.#owner.name, destination);
    return question;
  }

  #answer(question: Question<Host>, tell: (user: HostUser<Host>) => void): void {
    this.context.wheel.remove(question.timer);
    this.#questions.delete(question.key);
    // To be told may end others that wait: each is taken as it stands then.
    for (const user of question.users.keys()) {
      this.#release(question, user);
      tell(user);
    }
  }

  #release(question: Question<Host>, user: HostUser<Host>): void {
    question.users.get(user)!.releasePending();
    this.#limit?.release();
    question.users.delete(user);
    this.#awaited.delete(user);
  }
}

/** With what its picks are to know. */
interface KnownHost<Host> {
  readonly host: Host;
  readonly context: PickContext;
}

/** Who names a host gets no other: where that one is not healthy, there is none. */
function give<Host extends NamedHost>(host: Host, user: HostUser<Host>): void {
  if (!host.isUnhealthy) {
    user.onHost(host);
    return;
  }
  host.noteWanted();
  user.onNoHost('none');
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
