// The hosts of an ORIGINAL_DST cluster in this worker: requests name theirs, and no balancer chooses. A host that is not
// there yet is asked of main, which makes it for all workers; those who want it meanwhile share the question.
//
//   unknown ──wanted──► ASKED ──main publishes the host──► known ──unused for a while: main takes it back──► unknown
//                         └──main has no room, or says nothing in time: no host───────────────────────────────►┘
//
// Main answers a question by publishing the host, or not at all where it has done so before: messages keep their order, so
// the host is on its way then. Why hosts are made by main: docs/decisions/0026-hosts-on-demand-are-made-by-main.md.
//
// A host that has failed its checks or was ejected gets nothing, and nobody else gets it instead. A host that is known costs a
// request no text and no allocation: what its picks are to know is made once, with the host.

import { type Address, formatAddress, type IpAddress, parseIpAddress } from '../../base/address.ts';
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
  /**
   * `none`: nobody has said where to go, there was no answer, or the host is not healthy; `overflow`: a limit leaves no
   * room.
   */
  onNoHost(reason: 'none' | 'overflow'): void;
}

/** A host, as it is found by what requests name. */
export interface NamedHost {
  readonly address: Address;
  /** The same as text. */
  readonly label: string;
  /** It has failed its checks, or was ejected. */
  readonly isUnhealthy: boolean;
  /** Somebody has wanted it, and was turned away: main keeps it, and with it what is known of its health. */
  noteWanted(): void;
}

/** The cluster, as its destinations see it. */
export interface DestinationsOwner {
  readonly name: string;
  readonly statBase: number;
  readonly connectTimeoutMs: number;
  readonly settings: OriginalDstSettings;
}

/** Of one worker and cluster, at a time: what clients ask for, main has to deal with. */
const MAX_QUESTIONS = 1024;

export class OriginalDestinations<Host extends NamedHost> {
  readonly #context: WorkerContext;
  readonly #owner: DestinationsOwner;
  /** By port and IP, and by both as text. */
  readonly #byPort = new Map<number, Map<string, KnownHost<Host>>>();
  readonly #byText = new Map<string, KnownHost<Host>>();
  /** By the address of the host. */
  readonly #questions = new Map<string, Question<Host>>();
  /** Null where no header counts. */
  readonly #readHeader: ReadHeader | null;
  readonly #awaited = new Map<HostUser<Host>, Question<Host>>();

  constructor(context: WorkerContext, owner: DestinationsOwner) {
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
    const text = request === null ? undefined : this.#readHeader?.(request);
    if (text !== undefined) {
      const context = this.#contextNamed(text);
      if (context !== null) return context;
      this.#count(original_dst_host_invalid);
    }
    return meant === null ? null : this.#contextAt(meant);
  }

  /** Null for text that is no address. Hot. */
  #contextNamed(text: string): PickContext | null {
    const known = this.#owner.settings.port === 0 ? this.#byText.get(text) : undefined;
    if (known !== undefined) return known.context;
    const address = parseIpAddress(text);
    return address === undefined ? null : this.#contextAt(address);
  }

  #contextAt({ ip, port: named }: Endpoint): PickContext {
    const { port: override } = this.#owner.settings;
    const port = override === 0 ? named : override;
    return this.#find(ip, port)?.context ?? contextFor({ kind: 'ip', ip, port });
  }

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

  #await(destination: IpAddress, breaker: CircuitBreaker, user: HostUser<Host>): void {
    const key = formatAddress(destination);
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

  /** A host has come: those who wait for it get it. */
  add(host: Host): void {
    const { address, label } = host;
    if (address.kind !== 'ip') return;
    const known = { host, context: contextFor(address) };
    const byIp = this.#byPort.get(address.port) ?? new Map<string, KnownHost<Host>>();
    this.#byPort.set(address.port, byIp.set(address.ip, known));
    this.#byText.set(label, known);
    const question = this.#questions.get(label);
    if (question !== undefined) this.#answer(question, (user) => give(host, user));
  }

  /** A host has gone. */
  remove({ address, label }: Host): void {
    if (address.kind !== 'ip') return;
    this.#byText.delete(label);
    const byIp = this.#byPort.get(address.port);
    byIp?.delete(address.ip);
    if (byIp?.size === 0) this.#byPort.delete(address.port);
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

  #find(ip: string, port: number): KnownHost<Host> | undefined {
    return this.#byPort.get(port)?.get(ip);
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
