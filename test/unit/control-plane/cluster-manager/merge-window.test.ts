// When changes of a cluster go to the workers: at once, or those of a window together.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MergeWindow } from '../../../../src/control-plane/cluster-manager/merge-window.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const WINDOW_MS = 1000;

class Fixture {
  readonly clock = new ManualClock();
  /** Counters in the order of their additions, with each delivery between them. */
  readonly told: string[] = [];
  readonly window: MergeWindow;

  constructor(windowMs = WINDOW_MS) {
    const stats = { add: (name: string) => void this.told.push(name) };
    this.window = new MergeWindow(this.clock, windowMs, stats, () => void this.told.push('delivered'));
  }

  take(): string[] {
    return this.told.splice(0);
  }
}

const AT_ONCE = ['update_out_of_merge_window', 'cluster_updated', 'delivered'];

describe('a merge window', () => {
  it('lets the first change go at once, and those within it together when it ends', () => {
    const fixture = new Fixture();
    const { window, clock } = fixture;
    window.change();
    assert.deepEqual(fixture.take(), AT_ONCE);
    for (let changes = 0; changes < 3; changes++) window.change();
    clock.turn(WINDOW_MS - 1);
    assert.deepEqual([fixture.take(), clock.timerCount], [[], 1]);
    clock.turn(1);
    assert.deepEqual([fixture.take(), clock.timerCount], [['cluster_updated_via_merge', 'delivered'], 0]);
  });

  it('begins with each delivery, and holds a change up to its last moment', () => {
    const fixture = new Fixture();
    const { window, clock } = fixture;
    window.change();
    fixture.take();
    clock.turn(WINDOW_MS);
    window.change();
    assert.deepEqual(fixture.take(), []);
    clock.turn(WINDOW_MS);
    assert.deepEqual(fixture.take(), ['cluster_updated_via_merge', 'delivered']);
    clock.turn(WINDOW_MS + 1);
    window.change();
    assert.deepEqual(fixture.take(), AT_ONCE);
  });

  it('lets go of what waits when somebody else delivers it, and begins anew', () => {
    const fixture = new Fixture();
    const { window, clock } = fixture;
    window.cancel();
    assert.deepEqual(fixture.take(), []);
    window.change();
    window.cancel();
    assert.deepEqual([fixture.take(), clock.timerCount], [['update_merge_cancelled'], 0]);
    clock.turn(WINDOW_MS - 1);
    window.change();
    assert.deepEqual([fixture.take(), clock.timerCount], [[], 1]);
  });

  it('of no length holds nothing up, and counts nothing as outside of it', () => {
    const fixture = new Fixture(0);
    for (let changes = 0; changes < 2; changes++) fixture.window.change();
    assert.deepEqual(fixture.take(), ['cluster_updated', 'delivered', 'cluster_updated', 'delivered']);
  });
});
