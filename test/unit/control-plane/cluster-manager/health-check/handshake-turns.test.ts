// Places for the handshakes of health checks: who has one, who waits, and that nobody waits beside a free place.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type HandshakeTurn,
  HandshakeTurns,
} from '../../../../../src/control-plane/cluster-manager/health-check/handshake-turns.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';

const MAX = 3;
const HOLD_MS = 50;

/** What each of the turns is expected to be: a queue and places, by the clock. */
class Model {
  readonly waiting: number[] = [];
  readonly begun: number[] = [];
  /** When each place that is held is free again. */
  readonly held = new Map<number, number>();

  ask(id: number, nowMs: number): void {
    this.waiting.push(id);
    this.#fill(nowMs);
  }

  end(id: number, nowMs: number): void {
    this.held.delete(id);
    const at = this.waiting.indexOf(id);
    if (at !== -1) this.waiting.splice(at, 1);
    this.#fill(nowMs);
  }

  pass(untilMs: number): void {
    for (;;) {
      const [next] = [...this.held].filter(([, atMs]) => atMs <= untilMs).sort(([, a], [, b]) => a - b);
      if (next === undefined) return;
      this.end(next[0], next[1]);
    }
  }

  #fill(nowMs: number): void {
    while (this.held.size < MAX && this.waiting.length > 0) {
      const id = this.waiting.shift()!;
      this.begun.push(id);
      this.held.set(id, nowMs + HOLD_MS);
    }
  }
}

type Step = { readonly ask: true } | { readonly end: number } | { readonly passMs: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constant({ ask: true } as const),
  fc.nat().map((end) => ({ end })),
  fc.integer({ min: 1, max: 2 * HOLD_MS }).map((passMs) => ({ passMs })),
);

describe('turns of handshakes', () => {
  it('begin in order, as many as there are places, whatever ends when', () => {
    const property = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const clock = new ManualClock();
      const turns = new HandshakeTurns(clock, MAX);
      const model = new Model();
      const begun: number[] = [];
      const asked: HandshakeTurn[] = [];
      for (const each of steps) {
        if ('ask' in each) {
          const id = asked.length;
          model.ask(id, clock.monotonicMs());
          asked.push(turns.ask(() => void begun.push(id)));
        } else if ('end' in each) {
          if (asked.length === 0) continue;
          const id = each.end % asked.length;
          model.end(id, clock.monotonicMs());
          asked[id]!.end();
        } else {
          clock.turn(each.passMs);
          model.pass(clock.monotonicMs());
        }
        assert.deepEqual(begun, model.begun);
        assert.equal(clock.timerCount, model.held.size);
      }
      // Whatever there is, nobody waits for ever.
      clock.turn(HOLD_MS * (1 + Math.ceil(asked.length / MAX)));
      model.pass(clock.monotonicMs());
      assert.deepEqual(begun, model.begun);
      assert.equal(model.waiting.length, 0);
      assert.equal(clock.timerCount, 0);
    });
    fc.assert(property, { numRuns: 500 });
  });

  it('go on behind one that throws', () => {
    const clock = new ManualClock();
    const turns = new HandshakeTurns(clock, 1);
    assert.throws(() =>
      turns.ask(() => {
        throw new Error('no context');
      }),
    );
    let isBegun = false;
    turns.ask(() => {
      isBegun = true;
    });
    assert.ok(!isBegun);
    clock.turn(HOLD_MS);
    assert.ok(isBegun);
  });
});
