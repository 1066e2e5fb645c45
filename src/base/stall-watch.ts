// Whether a thread still turns its event loop, by beats that it counts. Any thread; whoever looks is another one.
//
// Silence is added up from look to look, and no look adds more than twice its interval: where all threads stood still (a stopped
// process, a machine that slept), nobody was silent for long.

export type Stall = 'miss' | 'mega-miss';

export interface StallLimits {
  /** 0 for never. */
  readonly missMs: number;
  /** 0 for never. */
  readonly megaMissMs: number;
}

export class StallWatch {
  readonly #limits: StallLimits;
  readonly #mostPerLookMs: number;
  #beats = 0;
  #silentMs = 0;
  #isMissed = false;
  #isMegaMissed = false;

  constructor(limits: StallLimits, intervalMs: number) {
    this.#limits = limits;
    this.#mostPerLookMs = 2 * intervalMs;
  }

  /** How long it has been silent; 0 for a thread that has not begun. */
  get silentMs(): number {
    return this.#silentMs;
  }

  /** @param beats the count now; 0 before it has begun. @returns what is new: each once for a silence. */
  look(beats: number, elapsedMs: number): readonly Stall[] {
    if (beats !== this.#beats || beats === 0) {
      this.#beats = beats;
      this.#silentMs = 0;
      this.#isMissed = false;
      this.#isMegaMissed = false;
      return [];
    }
    this.#silentMs += Math.min(elapsedMs, this.#mostPerLookMs);
    const { missMs, megaMissMs } = this.#limits;
    const stalls: Stall[] = [];
    if (!this.#isMissed && isOver(missMs, this.#silentMs)) {
      this.#isMissed = true;
      stalls.push('miss');
    }
    if (!this.#isMegaMissed && isOver(megaMissMs, this.#silentMs)) {
      this.#isMegaMissed = true;
      stalls.push('mega-miss');
    }
    return stalls;
  }
}

/** @param limitMs 0 for never. */
export function isOver(limitMs: number, silentMs: number): boolean {
  return limitMs > 0 && silentMs >= limitMs;
}

const SHORTEST_LOOK_MS = 5;
const LONGEST_LOOK_MS = 1000;

/** How often to look, or to beat, so that no silence beyond a limit goes by. @param limitsMs 0 for never. */
export function lookIntervalMs(limitsMs: readonly number[]): number {
  const shortest = Math.min(...limitsMs.filter((limit) => limit > 0), 2 * LONGEST_LOOK_MS);
  return Math.max(shortest / 2, SHORTEST_LOOK_MS);
}

/** Runs again and again. @returns what ends that. */
export function every(
  clock: { after(delayMs: number, callback: () => void): () => void },
  intervalMs: number,
  run: () => void,
): () => void {
  let cancel = (): void => {};
  let isEnded = false;
  const wait = (): void => {
    cancel = clock.after(intervalMs, () => {
      run();
      if (!isEnded) wait();
    });
  };
  wait();
  return () => {
    isEnded = true;
    cancel();
  };
}
