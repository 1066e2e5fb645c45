// Lists of names that come and go: nothing that is gone is kept, and no length stops the event loop.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SortedList } from '../../../src/stats/sorted-list.ts';

interface Item {
  readonly name: string;
  readonly isLive: boolean;
}

const named = (name: string): Item => ({ name, isLive: true });

/** Keeps the processor busy. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Counts the turns of the event loop until `done`. */
async function turnsUntil(done: Promise<unknown>): Promise<{ readonly turns: number }> {
  const count = { turns: 0 };
  let isOver = false;
  const watch = (): void => {
    count.turns += 1;
    if (!isOver) setImmediate(watch);
  };
  setImmediate(watch);
  await done;
  isOver = true;
  return count;
}

describe('a sorted list', () => {
  it('forgets what has died, both of its own and what has waited to be taken in', async () => {
    const list = new SortedList<Item>();
    let isLive = true;
    const mortal: Item = {
      name: 'b',
      get isLive() {
        return isLive;
      },
    };
    for (const item of [named('c'), mortal, named('a')]) list.add(item);
    assert.deepEqual(
      (await list.items()).map(({ name }) => name),
      ['a', 'b', 'c'],
    );
    isLive = false;
    list.add({ name: 'never', isLive: false });
    list.add(named('d'));
    assert.deepEqual(
      (await list.items()).map(({ name }) => name),
      ['a', 'c', 'd'],
    );
  });

  it('throws out items that died unseen, however many come and go between two listings', async () => {
    const list = new SortedList<Item>();
    let looks = 0;
    const dead: Item = {
      name: 'dead',
      get isLive() {
        looks += 1;
        return false;
      },
    };
    for (let n = 0; n < 100_000; n++) list.add(dead);
    looks = 0;
    await list.items();
    assert.ok(looks <= 1024, `${looks} were kept`);
  });

  it('does not look through what waits at each addition', () => {
    const list = new SortedList<Item>();
    let looks = 0;
    const item: Item = {
      name: 'live',
      get isLive() {
        looks += 1;
        return true;
      },
    };
    for (let n = 0; n < 20_000; n++) list.add(item);
    assert.ok(looks < 60_000, `${looks} looks`);
  });

  it('gives the event loop back while it sorts what it takes in', async () => {
    const list = new SortedList<Item>();
    let turn = 0;
    let isOver = false;
    const watch = (): void => {
      turn += 1;
      if (!isOver) setImmediate(watch);
    };
    setImmediate(watch);
    const turnsSeen = new Set<number>();
    for (let n = 0; n < 40 * 256; n++) {
      list.add({
        name: `${n}`,
        get isLive() {
          if (turnsSeen.size < 40) {
            turnsSeen.add(turn);
            if (n % 256 === 0) work(4);
          }
          return true;
        },
      });
    }
    turnsSeen.clear();
    const items = await list.items();
    isOver = true;
    assert.equal(items.length, 40 * 256);
    assert.ok(turnsSeen.size >= 10, `${turnsSeen.size} turns`);
  });

  it('gives the event loop back while it takes one more into many, but not for each of them', async () => {
    const list = new SortedList<Item>();
    const LENGTH = 4096;
    for (let at = 0; at < LENGTH; at++) list.add(named(String(at).padStart(4, '0')));
    await list.items();
    let isSlow = true;
    // The first look of each step of the way through the list; the newcomer is compared with all of them.
    const newcomer: Item = {
      get name() {
        if (isSlow) work(0.02);
        return '~';
      },
      isLive: true,
    };
    list.add(newcomer);
    const { turns } = await turnsUntil(list.items());
    isSlow = false;
    assert.ok(turns >= 5, `${turns} turns`);
    assert.ok(turns < LENGTH / 4, `${turns} turns`);
  });
});
