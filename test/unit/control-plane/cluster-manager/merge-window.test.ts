// Changes of a cluster that wait for others, on a clock that the test turns.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type MergeStats, MergeWindow } from '../../../../src/control-plane/cluster-manager/merge-window.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const WINDOW_MS = 1000;

class Merging {
  readonly clock = new ManualClock();
  readonly counts: Partial<Record<Parameters<MergeStats['add']>[0], number>> = {};
  /** When the workers were told, from the beginning on. */
  readonly deliveries: number[] = [];
  readonly window: MergeWindow;
  readonly #begunMs = this.clock.monotonicMs();

  constructor(windowMs = WINDOW_MS) {
    const stats: MergeStats = {
      add: (name) => {
        this.counts[name] = (this.counts[name] ?? 0) + 1;
      },
    };
    this.window = new MergeWindow(this.clock, windowMs, stats, () => this.deliveries.push(this.nowMs));
  }

  get nowMs(): number {
    return this.clock.monotonicMs() - this.#begunMs;
  }

  /** Changes at these times; negative ones are changes of members. */
  at(...times: readonly number[]): this {
    for (const time of times) {
      this.clock.turn(Math.abs(time) - this.nowMs);
      if (time >= 0) {
        this.window.change();
        continue;
      }
      this.window.cancel();
      this.deliveries.push(this.nowMs);
    }
    return this;
  }
}

describe('changes of health, weight or metadata', () => {
  test('go at once when nothing went before, and wait together for the end of a window otherwise', () => {
    const merging = new Merging().at(0, 1, 500, 1000);
    merging.clock.turn(10_000);
    // The window of those that follow begins with the first of them.
    assert.deepEqual(merging.deliveries, [0, 1001]);
    assert.deepEqual(merging.counts, {
      cluster_updated: 1,
      cluster_updated_via_merge: 1,
      update_out_of_merge_window: 1,
    });
  });

  test('count from what went last, merged or not', () => {
    const merging = new Merging().at(0, 10, 1500, 2010, 3600);
    merging.clock.turn(10_000);
    assert.deepEqual(merging.deliveries, [0, 1010, 2500, 3600]);
    assert.deepEqual(merging.counts, {
      cluster_updated: 2,
      cluster_updated_via_merge: 2,
      update_out_of_merge_window: 2,
    });
  });

  test('go along with a change of members, which waits for nothing', () => {
    const merging = new Merging().at(0, 10, -20, 30);
    merging.clock.turn(10_000);
    assert.deepEqual(merging.deliveries, [0, 20, 1030]);
    assert.equal(merging.counts.update_merge_cancelled, 1);
    assert.equal(merging.clock.timerCount, 0);
  });

  test('never wait without a window, which counts nothing but the update', () => {
    const merging = new Merging(0).at(0, 0, 1);
    assert.deepEqual(merging.deliveries, [0, 0, 1]);
    assert.deepEqual(merging.counts, { cluster_updated: 3 });
  });

  test('are all delivered within a window, and hardly more often than once in one', () => {
    const gaps = fc.array(fc.record({ gap: fc.nat(2 * WINDOW_MS), ofMembers: fc.boolean() }), { maxLength: 40 });
    fc.assert(
      fc.property(gaps, (changes) => {
        const merging = new Merging();
        const changed: number[] = [];
        let ofMembers = 0;
        for (const change of changes) {
          const nowMs = merging.nowMs + change.gap;
          changed.push(nowMs);
          if (change.ofMembers) ofMembers += 1;
          merging.at(change.ofMembers && nowMs > 0 ? -nowMs : nowMs);
        }
        merging.clock.turn(WINDOW_MS);
        for (const time of changed) {
          assert.ok(merging.deliveries.some((each) => each >= time && each <= time + WINDOW_MS));
        }
        assert.ok(merging.deliveries.length <= ofMembers + 1 + merging.nowMs / WINDOW_MS);
        assert.equal(merging.clock.timerCount, 0);
      }),
    );
  });
});
