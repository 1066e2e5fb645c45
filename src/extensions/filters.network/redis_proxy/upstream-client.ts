// One connection of this worker to a host that speaks Redis: requests of all clients go over it, one behind the other, and
// answers come in the same order. Where the host asks who comes, that is said first.
//
//   CONNECTING ──connected──► OPEN ──closed, late, nonsense──► over: all that wait fail
//                               └──host left──► LEAVING ──last answer──► over

import type { Clock } from '../../../base/clock.ts';
import { hashTag } from '../../../base/redis-slots.ts';
import {
  isRefusal,
  type Redirection,
  RespError,
  RespReader,
  redirectionOf,
  request,
  requestToAuth,
} from '../../../base/resp.ts';
import { bucketState, TokenBucket } from '../../../base/token-bucket.ts';
import type {
  FilterHost,
  FilterLink,
  FilterUpstreams,
  LinkReceiver,
  TerminalFilterContext,
} from '../../../data-plane/index.ts';
import type { RedisPoolSettings } from './settings.ts';
import { slotsOf } from './slots.ts';

/** Why there is no answer: the host has not let the proxy in, or anything else. */
export type NoAnswer = 'refused' | 'failed';

/** Who waits for an answer; told once. */
export interface AnswerReceiver {
  /** @param message borrowed until return. */
  onAnswer(message: Buffer): void;
  onNoAnswer(why: NoAnswer): void;
}

/** Who is told of answers that nobody waits for. */
export const NOBODY: AnswerReceiver = { onAnswer() {}, onNoAnswer() {} };

/** Of requests that wait for answers over one connection: who goes beyond it is told that there is none. */
const MAX_WAITING = 65_536;
/** Bytes of requests that a host which takes none may hold up. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** Of one request: hosts that send it around in a circle are given up. */
const MAX_REDIRECTIONS = 5;
const SECOND_MS = 1000;
const ASKING = request(['ASKING']);
/** Replicas send those elsewhere who have not said so. */
const READONLY = request(['READONLY']);

interface Waiting {
  /** Null: the proxy has asked in its own name, which counts for no request. */
  readonly receiver: AnswerReceiver | null;
  readonly sinceMs: number;
}

export class RedisUpstreams {
  readonly #settings: RedisPoolSettings;
  readonly #upstreams: FilterUpstreams;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #onRateLimited: () => void;
  readonly #clients = new Map<FilterHost, UpstreamClient>();
  /** Of connections; empty where there may be any number. */
  readonly #buckets = new WeakMap<FilterHost, TokenBucket>();

  /** @param onRateLimited a connection is not opened because there were too many. */
  constructor(
    settings: RedisPoolSettings,
    context: Pick<TerminalFilterContext, 'upstreams' | 'clock' | 'random'>,
    onRateLimited: () => void,
  ) {
    this.#onRateLimited = onRateLimited;
    this.#settings = settings;
    this.#upstreams = context.upstreams;
    this.#clock = context.clock;
    this.#random = () => context.random();
  }

  /**
   * @param key that says which host gets it. @param request given away. @param isRead it changes nothing.
   * @returns false when there is no host, or no place for a connection to it; the receiver is not told then.
   */
  send(cluster: string, key: Buffer, request: Buffer, receiver: AnswerReceiver, isRead: boolean): boolean {
    const host = this.#hostFor(cluster, key, isRead);
    if (host === null) return false;
    if (!this.#settings.followsRedirections) return this.#sendTo(host, request, receiver, false);
    // What is given away cannot be sent again.
    const kept = Buffer.from(request);
    return this.#sendTo(host, request, this.#following(host, kept, receiver), false);
  }

  #hostFor(cluster: string, key: Buffer, isRead: boolean): FilterHost | null {
    const { usesHashTags, readPolicy } = this.#settings;
    const slots = slotsOf(this.#upstreams.members(cluster));
    if (slots !== null) return slots.hostFor(key, isRead ? readPolicy : 'primary', this.#random);
    return this.#upstreams.hostFor(cluster, usesHashTags ? hashTag(key) : key);
  }

  /** Takes answers to a request that is sent again where they say that another host is to be asked. */
  #following(first: FilterHost, kept: Buffer, receiver: AnswerReceiver): AnswerReceiver {
    let host = first;
    let left = MAX_REDIRECTIONS;
    const following: AnswerReceiver = {
      onAnswer: (message) => {
        const redirection = redirectionOf(message);
        if (redirection === null || !goesOn(redirection)) receiver.onAnswer(message);
      },
      onNoAnswer: (why) => receiver.onNoAnswer(why),
    };
    const goesOn = ({ isAsk, host: name, port }: Redirection): boolean => {
      const former = host;
      const next = left > 0 ? this.#upstreams.hostAt(host, name, port) : null;
      if (next === null && left > 0) this.#upstreams.reportStranger(host, name, port);
      left -= 1;
      if (next !== null) host = next;
      const isFollowed = next !== null && this.#sendTo(next, Buffer.from(kept), following, isAsk);
      this.#clients.get(former)?.redirected(isFollowed);
      return isFollowed;
    };
    return following;
  }

  /** @param isAsked of the host, which is not the key's yet. */
  #sendTo(host: FilterHost, request: Buffer, receiver: AnswerReceiver, isAsked: boolean): boolean {
    const client = this.#clients.get(host) ?? this.#connect(host);
    return client?.send(request, receiver, isAsked) ?? false;
  }

  /** @returns undefined where there is no place for one. */
  #connect(host: FilterHost): UpstreamClient | undefined {
    if (!this.#mayConnect(host)) {
      this.#onRateLimited();
      return undefined;
    }
    const client = new UpstreamClient(this.#settings, this.#clock, () => {
      if (this.#clients.get(host) === client) this.#clients.delete(host);
    });
    if (!client.connect(this.#upstreams, host)) return undefined;
    this.#clients.set(host, client);
    return client;
  }

  #mayConnect(host: FilterHost): boolean {
    const { maxConnectionsPerSecond: most } = this.#settings;
    if (most === 0) return true;
    const nowMs = this.#clock.monotonicMs();
    let bucket = this.#buckets.get(host);
    if (bucket === undefined) {
      const state = bucketState(most, nowMs);
      bucket = new TokenBucket({ maxTokens: most, tokensPerFill: most, fillIntervalMs: SECOND_MS, state });
      this.#buckets.set(host, bucket);
    }
    return bucket.take(1, nowMs);
  }

  /** Ends all connections; who waits gets no answer. */
  close(): void {
    for (const client of [...this.#clients.values()]) client.fail('failed');
  }
}

class UpstreamClient implements LinkReceiver {
  readonly #settings: RedisPoolSettings;
  readonly #clock: Clock;
  readonly #onOver: () => void;
  readonly #reader = new RespReader(() => MAX_ANSWER_BYTES);
  #link: FilterLink | null = null;
  #isOver = false;
  #isLeaving = false;
  /** In the order of their requests; those before #first have been answered. */
  #waiting: Waiting[] = [];
  #first = 0;
  /** Not written yet. */
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  #isFlushPlanned = false;
  #awaitsWelcome = false;
  #isBackedUp = false;
  #cancelFlush: (() => void) | null = null;
  #cancelTimeout: (() => void) | null = null;

  constructor(settings: RedisPoolSettings, clock: Clock, onOver: () => void) {
    this.#settings = settings;
    this.#clock = clock;
    this.#onOver = onOver;
  }

  connect(upstreams: FilterUpstreams, host: FilterHost): boolean {
    this.#link = upstreams.connect(host, this);
    // It may have failed at once.
    if (this.#link === null || this.#isOver) return false;
    this.#awaitsWelcome = host.credentials !== null;
    if (host.credentials !== null) this.#add(requestToAuth(host.credentials), null);
    if (this.#settings.readPolicy !== 'primary') this.#add(Buffer.from(READONLY), null);
    return true;
  }

  /** @param isAsked as a favour: the host has said that it is to be told so. */
  send(request: Buffer, receiver: AnswerReceiver, isAsked: boolean): boolean {
    if (this.#isOver || this.#waitingCount >= MAX_WAITING || this.#unsentBytes > MAX_UNSENT_BYTES) return false;
    if (isAsked) this.#add(Buffer.from(ASKING), null);
    this.#link!.requestBegan();
    this.#add(request, receiver);
    this.#planFlush();
    return true;
  }

  /** An answer of its host has named another one. */
  redirected(isFollowed: boolean): void {
    this.#link!.redirected(isFollowed);
  }

  #add(request: Buffer, receiver: AnswerReceiver | null): void {
    this.#waiting.push({ receiver, sinceMs: this.#clock.monotonicMs() });
    this.#cancelTimeout ??= this.#watch(this.#settings.opTimeoutMs);
    this.#unsent.push(request);
    this.#unsentBytes += request.length;
  }

  onConnected(): void {}

  onBytes(bytes: Buffer): void {
    this.#reader.push(bytes);
    try {
      for (let message = this.#reader.next(); message !== null; message = this.#reader.next()) {
        if (this.#waitingCount === 0) throw new RespError('an answer to nothing');
        const { receiver } = this.#take();
        if (receiver === null) {
          if (this.#awaitsWelcome && isRefusal(message)) {
            this.fail('failed', 'refused');
            return;
          }
          this.#awaitsWelcome = false;
          continue;
        }
        this.#link!.requestEnded('answered');
        receiver.onAnswer(message);
        if (this.#isOver) return;
      }
    } catch (error) {
      if (!(error instanceof RespError)) throw error;
      this.fail('failed');
      return;
    }
    if (this.#isLeaving && this.#waitingCount === 0) this.fail('failed');
  }

  onWritable(): void {
    this.#isBackedUp = false;
    if (this.#unsentBytes > 0) this.#flush();
  }

  /** What is under way goes on; the next request gets another connection, if the host is there again. */
  onHostLeft(): void {
    this.#isLeaving = true;
    this.#onOver();
    if (this.#waitingCount === 0) this.fail('failed');
  }

  onClosed(): void {
    this.fail('failed');
  }

  /** Ends the connection; who waits gets no answer. */
  fail(outcome: 'failed' | 'timeout', why: NoAnswer = 'failed'): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelFlush?.();
    this.#cancelTimeout?.();
    this.#onOver();
    const waiting = this.#waiting.slice(this.#first);
    this.#waiting = [];
    this.#first = 0;
    this.#unsent = [];
    for (const { receiver } of waiting) if (receiver !== null) this.#link?.requestEnded(outcome);
    this.#link?.close();
    for (const { receiver } of waiting) receiver?.onNoAnswer(why);
  }

  get #waitingCount(): number {
    return this.#waiting.length - this.#first;
  }

  #take(): Waiting {
    const taken = this.#waiting[this.#first]!;
    this.#first += 1;
    if (this.#first === this.#waiting.length) {
      this.#waiting = [];
      this.#first = 0;
      this.#cancelTimeout?.();
      this.#cancelTimeout = null;
    } else if (this.#first >= 1024) {
      this.#waiting.splice(0, this.#first);
      this.#first = 0;
    }
    return taken;
  }

  /** One timer, for the oldest. */
  #watch(afterMs: number): () => void {
    return this.#clock.after(afterMs, () => {
      this.#cancelTimeout = null;
      const oldest = this.#waiting[this.#first];
      if (oldest === undefined) return;
      const leftMs = oldest.sinceMs + this.#settings.opTimeoutMs - this.#clock.monotonicMs();
      if (leftMs <= 0) this.fail('timeout');
      else this.#cancelTimeout = this.#watch(leftMs);
    });
  }

  #planFlush(): void {
    const { flushBytes, flushMs } = this.#settings;
    if (flushBytes > 0) {
      if (this.#unsentBytes >= flushBytes) this.#flush();
      else {
        this.#cancelFlush ??= this.#clock.after(flushMs, () => {
          this.#cancelFlush = null;
          this.#flush();
        });
      }
      return;
    }
    if (this.#isFlushPlanned) return;
    this.#isFlushPlanned = true;
    queueMicrotask(() => {
      this.#isFlushPlanned = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#isOver || this.#isBackedUp || this.#unsent.length === 0) return;
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    const bytes = this.#unsent.length === 1 ? this.#unsent[0]! : Buffer.concat(this.#unsent, this.#unsentBytes);
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#isBackedUp = !this.#link!.write(bytes);
  }
}
