// How much of a worker's time handshakes may take at once. A handshake costs OpenSSL some tenths of a millisecond in one piece; a
// thousand clients whose first records come together would keep everybody else waiting for as long as all of them take, and so would
// a thousand connections to upstreams that are there in one moment.
//
//   ask ──time is left in this turn, and nobody waits──► BEGUN
//    └──else──► WAITING ──the others before it have begun, and time is left in a turn──► BEGUN
//                  └──leave──► never begun
//
// In each turn of the event loop they get as much time as everything else has taken in the turn before, within bounds; the last
// that begins may exceed it. Where clients and upstreams wait, they take turns: neither keeps the other out. So a burst at most doubles what others wait for, and nobody who floods a worker with requests
// keeps new clients out. What waits costs its socket and its first bytes, and is bounded by the number of connections.
//
// OpenSSL works in a tick behind the call that begins a handshake, so the time is taken there; and the next begins there.
//
// None begins at the end of a turn, where turns are counted, but where the loop takes in what has come. Node takes note of what the
// kernel has got of a handshake at the end of the turn: where a client answers before that, what it is sent next does not fit
// into the buffer that is there, and the connection gets one of 16 KiB for good.

import type { Clock } from '../../../base/clock.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import { atPoll } from '../../../base/poll-phase.ts';

const LEAST_MS = 2;
/** Also where a turn has been very long: half of a worker that is late for everything. */
const MOST_MS = 20;
const NONE = -1;

export interface PacedHandshake {
  /** Once for an `ask` that was not followed by `leave`; perhaps within it. */
  begin(): void;
}

/** Where callbacks wait. */
export interface EventLoop {
  /** For the ticks behind a callback of the loop. */
  readonly nextTick: (callback: () => void) => void;
  /** For the end of a turn. */
  readonly nextTurn: (callback: () => void) => void;
  /** For where the next turn takes in what has come. @returns what requests the call. */
  readonly atPoll: (callback: () => void) => () => void;
}

const EVENT_LOOP: EventLoop = { nextTick: process.nextTick, nextTurn: setImmediate, atPoll };

export class HandshakePacing {
  readonly #clock: Clock;
  readonly #loop: EventLoop;
  readonly #onTick: () => void;
  readonly #onTurn: () => void;
  readonly #requestNext: () => void;
  /** Those of clients, and those with upstreams; each in the order in which they have asked. */
  readonly #clients = new Set<PacedHandshake>();
  readonly #upstreams = new Set<PacedHandshake>();
  /** Who has begun last, of those that had to wait. */
  #last = this.#clients;
  /** When the handshake has begun whose tick is awaited. */
  #beganMs = NONE;
  /** When this turn has begun, while turns are counted: from a first handshake until one turn has had none. */
  #turnMs = NONE;
  #spentMs = 0;
  #allowedMs = LEAST_MS;

  constructor(clock: Clock, faults: FaultBoundary, loop = EVENT_LOOP) {
    this.#clock = clock;
    this.#loop = loop;
    this.#onTick = faults.handler('the end of a TLS handshake', () => this.#tick());
    this.#onTurn = faults.handler('the pacing of TLS handshakes', () => this.#turn());
    this.#requestNext = loop.atPoll(faults.handler('the next TLS handshake', () => this.#beginNext()));
  }

  /** How many wait. */
  get waiting(): number {
    return this.#clients.size + this.#upstreams.size;
  }

  /** @returns whether it has begun within the call. */
  ask(handshake: PacedHandshake, isOfUpstream = false): boolean {
    if (this.#turnMs === NONE) {
      this.#turnMs = this.#clock.monotonicMs();
      this.#loop.nextTurn(this.#onTurn);
    }
    if (!this.#mayBegin || this.waiting > 0) {
      (isOfUpstream ? this.#upstreams : this.#clients).add(handshake);
      return false;
    }
    this.#begin(handshake);
    return true;
  }

  /** It is not wanted any more. Idempotent. */
  leave(handshake: PacedHandshake): void {
    if (!this.#clients.delete(handshake)) this.#upstreams.delete(handshake);
  }

  get #mayBegin(): boolean {
    return this.#beganMs === NONE && this.#spentMs < this.#allowedMs;
  }

  /** Whatever it throws, its tick comes. */
  #begin(handshake: PacedHandshake): void {
    this.#beganMs = this.#clock.monotonicMs();
    try {
      handshake.begin();
    } finally {
      this.#loop.nextTick(this.#onTick);
    }
  }

  #tick(): void {
    this.#spentMs += this.#clock.monotonicMs() - this.#beganMs;
    this.#beganMs = NONE;
    this.#beginNext();
  }

  #turn(): void {
    const nowMs = this.#clock.monotonicMs();
    const isOver = this.waiting === 0 && this.#spentMs === 0 && this.#beganMs === NONE;
    const othersMs = nowMs - this.#turnMs - this.#spentMs;
    this.#allowedMs = isOver ? LEAST_MS : Math.min(Math.max(othersMs, LEAST_MS), MOST_MS);
    this.#spentMs = 0;
    this.#turnMs = isOver ? NONE : nowMs;
    if (isOver) return;
    this.#loop.nextTurn(this.#onTurn);
    if (this.waiting > 0) this.#requestNext();
  }

  /** The others follow behind its tick. */
  #beginNext(): void {
    if (!this.#mayBegin) return;
    const others = this.#last === this.#clients ? this.#upstreams : this.#clients;
    if (others.size > 0) this.#last = others;
    const [next] = this.#last;
    if (next === undefined) return;
    this.#last.delete(next);
    this.#begin(next);
  }
}
