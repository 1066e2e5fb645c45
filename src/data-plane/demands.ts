// What requests of this worker wait for that main has discovered for them. All who want the same wait for one answer; whoever leaves is told
// nothing. What has been discovered comes by the same way as everything else, before the answer.
//
//   ask ──first of its kind──▶ main ──answer──▶ everybody who still waits

import type { Demand } from '../snapshot/index.ts';

/** Told once; `false` where it is not to be had. */
export type DemandWaiter = (isThere: boolean) => void;

interface OpenDemand {
  readonly key: string;
  readonly waiters: Set<DemandWaiter>;
}

/** Different things that a worker may wait for at once. What is beyond it cannot be had now. */
const MOST_DEMANDS = 1000;
/** Who may wait at once. */
const MOST_WAITERS = 10_000;

export class Demands {
  readonly #ask: (question: number, demand: Demand) => void;
  readonly #onFault: (error: unknown) => void;
  readonly #byKey = new Map<string, number>();
  readonly #open = new Map<number, OpenDemand>();
  #lastQuestion = 0;
  #waiting = 0;

  /** @param ask tells main. @param onFault told of what waiters throw. */
  constructor(ask: (question: number, demand: Demand) => void, onFault: (error: unknown) => void) {
    this.#ask = ask;
    this.#onFault = onFault;
  }

  /** Those who wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /** @param waiter told in a later turn. @returns what it leaves by; undefined where too many wait already. */
  ask(demand: Demand, waiter: DemandWaiter): (() => void) | undefined {
    if (this.#waiting === MOST_WAITERS) return undefined;
    const key = JSON.stringify(demand);
    let question = this.#byKey.get(key);
    if (question === undefined) {
      if (this.#open.size === MOST_DEMANDS) return undefined;
      this.#lastQuestion += 1;
      question = this.#lastQuestion;
      this.#byKey.set(key, question);
      this.#open.set(question, { key, waiters: new Set() });
      this.#ask(question, demand);
    }
    const { waiters } = this.#open.get(question)!;
    // The same function may wait twice.
    const own: DemandWaiter = (isThere) => waiter(isThere);
    waiters.add(own);
    this.#waiting += 1;
    return () => {
      if (waiters.delete(own)) this.#waiting -= 1;
    };
  }

  /** Main has answered. */
  answered(question: number, isThere: boolean): void {
    const open = this.#open.get(question);
    if (open === undefined) return;
    this.#open.delete(question);
    this.#byKey.delete(open.key);
    const { waiters } = open;
    for (const waiter of waiters) {
      // Those before it may have had it leave.
      if (!waiters.delete(waiter)) continue;
      this.#waiting -= 1;
      try {
        waiter(isThere);
      } catch (error) {
        this.#onFault(error);
      }
    }
  }
}
