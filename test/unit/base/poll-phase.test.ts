// That the call comes where the loop takes in what has come, and not at the end of its turn.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { atPoll } from '../../../src/base/poll-phase.ts';

const TIMER_MS = 1;

/** Asks for the next call. */
class Calls {
  count = 0;
  #onCall = (): void => {};
  readonly request = atPoll(() => {
    this.count += 1;
    this.#onCall();
  });

  /** @param within runs in the call. */
  next<T>(within: () => T): Promise<Awaited<T>> {
    return new Promise<T>((resolve) => {
      this.#onCall = () => resolve(within());
      this.request();
    }) as Promise<Awaited<T>>;
  }
}

/** What comes first of now: a timer that is due, or an immediate. It tells the parts of a turn apart: timers come between immediates and sockets. */
function firstToCome(): Promise<'timer' | 'immediate'> {
  return new Promise((resolve) => {
    setImmediate(resolve, 'immediate' as const);
    setTimeout(resolve, TIMER_MS, 'timer' as const);
    const until = performance.now() + 2 * TIMER_MS;
    while (performance.now() < until);
  });
}

describe('a call where the loop takes in what has come', () => {
  it('comes there, also when it is requested at the end of a turn', async () => {
    const calls = new Calls();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(await firstToCome(), 'timer', 'this is how the end of a turn shows');
    for (let round = 0; round < 3; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(await calls.next(firstToCome), 'immediate');
    }
  });

  it('comes before the end of the next turn', async () => {
    const calls = new Calls();
    await calls.next(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    calls.request();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(calls.count, 2);
  });

  it('comes once for several requests, and again for one behind it', async () => {
    const calls = new Calls();
    calls.request();
    calls.request();
    await calls.next(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(calls.count, 1);
    await calls.next(() => {});
    assert.equal(calls.count, 2);
  });

  it('keeps no loop alive', async () => {
    const ports = (): number => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;
    const before = ports();
    await new Calls().next(() => {});
    assert.equal(ports(), before);
  });
});
