// Whether a response ends its connection, because its listener drains: by order of the operator, or because another
// configuration has taken its place. Worker thread. Asked with
// every response, and answered by two comparisons while nothing drains.
//
//   gradual, duration 600 s:  share of responses that end their connections = time since the start / 600 s, then all

import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { DrainProgress, DrainState, ListenerSettings } from '../snapshot/index.ts';

/** The drains of one worker. */
export class Drains {
  readonly #clock: Clock;
  readonly #random: Random;
  inbound: Drain | null = null;
  others: Drain | null = null;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Takes over how things stand on main. */
  begin({ inbound, others }: DrainState): void {
    this.inbound = this.#drain(inbound);
    this.others = this.#drain(others);
  }

  /** A drain of its own. */
  begun(progress: DrainProgress): Drain {
    return new Drain(progress, this.#clock, this.#random);
  }

  #drain(progress: DrainProgress | null): Drain | null {
    return progress && this.begun(progress);
  }
}

export class Drain {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #startMs: number;
  /** 0 for all at once. */
  readonly #durationMs: number;

  constructor({ strategy, elapsedMs, durationMs }: DrainProgress, clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
    this.#startMs = clock.monotonicMs() - elapsedMs;
    this.#durationMs = strategy === 'immediate' ? 0 : durationMs;
  }

  /** Decides anew each time. */
  closes(): boolean {
    const elapsedMs = this.#clock.monotonicMs() - this.#startMs;
    return elapsedMs >= this.#durationMs || this.#random.u32() % this.#durationMs < elapsedMs;
  }

  /** From now on, to somewhere in the time that is left; 0 where there is none. Decides anew each time. */
  get noticeMs(): number {
    const leftMs = Math.ceil(this.#startMs + this.#durationMs - this.#clock.monotonicMs());
    return leftMs > 0 ? this.#random.u32() % leftMs : 0;
  }
}

/** What drains mean to one listener. */
export class ListenerDrain {
  readonly #drains: Drains;
  readonly #serverHealth: { readonly isFailing: boolean };
  readonly #isInbound: boolean;
  readonly #followsHealth: boolean;
  /** Of a listener that has been replaced or removed. */
  #own: Drain | null = null;

  /** @param serverHealth the operator's word, for listeners that follow it. */
  constructor(
    { drains, serverHealth }: { readonly drains: Drains; readonly serverHealth: { readonly isFailing: boolean } },
    { trafficDirection, drainType }: Pick<ListenerSettings, 'trafficDirection' | 'drainType'>,
  ) {
    this.#drains = drains;
    this.#serverHealth = serverHealth;
    this.#isInbound = trafficDirection === 'INBOUND';
    this.#followsHealth = drainType === 'default';
  }

  /** The listener has been replaced, or removed. */
  begin(progress: DrainProgress): void {
    this.#own = this.#drains.begun(progress);
  }

  /** Every connection ends as soon as it can. */
  get isCertain(): boolean {
    return this.#serverHealth.isFailing && this.#followsHealth;
  }

  /** Whether the response at hand ends its connection: for once, where that is a matter of chance. */
  closes(): boolean {
    if (this.#own?.closes()) return true;
    const drain = this.#ordered;
    return drain === null ? this.isCertain : this.isCertain || drain.closes();
  }

  /** When a connection that ends by no response is to end, from now on; infinite while there is no drain. */
  get noticeMs(): number {
    const ownMs = this.#own?.noticeMs ?? Number.POSITIVE_INFINITY;
    return Math.min(ownMs, this.#ordered?.noticeMs ?? Number.POSITIVE_INFINITY);
  }

  /** By the operator. */
  get #ordered(): Drain | null {
    return this.#isInbound ? this.#drains.inbound : this.#drains.others;
  }
}
