// A worker whose requests wait for what main discovers: what it says to main, and what main says to it, is on its way until a test
// delivers it. Whoever is told that something is there has it.

import assert from 'node:assert/strict';
import type { DemandAnswer } from '../../src/control-plane/open-demands.ts';
import { Demands } from '../../src/data-plane/demands.ts';
import type { Demand } from '../../src/snapshot/index.ts';

export class AskingWorker {
  /** By request: how often it has been told. */
  readonly told: number[] = [];
  /** What it serves. */
  known: ReadonlySet<string> = new Set();
  readonly #toMain: [number, Demand][] = [];
  readonly #toWorker: (() => void)[] = [];
  readonly #leaves: (() => void)[] = [];
  readonly #demands = new Demands(
    (question, demand) => void this.#toMain.push([question, demand]),
    (error) => assert.fail(String(error)),
  );

  get waiting(): number {
    return this.#demands.waiting;
  }

  /** Goes on at once where it is known. @returns the place of who waits; undefined where nobody has to. */
  request(name: string, demand: Demand): number | undefined {
    if (this.known.has(name)) return undefined;
    const at = this.told.push(0) - 1;
    const leave = this.#demands.ask(demand, (isThere) => {
      this.told[at]! += 1;
      if (isThere) assert.ok(this.known.has(name), `a worker that has been told of ${name} too early`);
    });
    this.#leaves[at] = leave!;
    return at;
  }

  /** The request is over. @returns false where it was before. */
  leave(at: number): boolean {
    if (this.told[at] !== 0) return false;
    this.#leaves[at]!();
    // Nobody is to tell it.
    this.told[at] = 1;
    return true;
  }

  /** As main sends them, one behind the other. */
  send(message: () => void): void {
    this.#toWorker.push(message);
  }

  /** @returns false where nothing is on its way. */
  deliverToMain(onDemand: (demand: Demand, answer: DemandAnswer) => void): boolean {
    const message = this.#toMain.shift();
    if (message === undefined) return false;
    const [question, demand] = message;
    onDemand(demand, (isThere) => this.send(() => this.#demands.answered(question, isThere)));
    return true;
  }

  deliverToWorker(): boolean {
    const message = this.#toWorker.shift();
    message?.();
    return message !== undefined;
  }
}
