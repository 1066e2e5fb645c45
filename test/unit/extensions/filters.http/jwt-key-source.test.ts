// Keys of a server, by a clock of the test's own: who waits for them, how long they count, and when they are asked for again.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CallReceiver, FilterContext } from '../../../../src/data-plane/index.ts';
import { type KeySource, openKeys } from '../../../../src/extensions/filters.http/jwt_authn/key-source.ts';
import type { RemoteKeys } from '../../../../src/extensions/filters.http/jwt_authn/settings.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { keySet, secretSigner } from '../../../support/tokens.ts';

const SETTINGS: RemoteKeys = {
  kind: 'remote',
  cluster: 'keys',
  host: 'keys.test',
  path: '/keys',
  timeoutMs: 1000,
  cacheMs: 10_000,
  isEager: false,
  failedRefetchMs: 500,
  retries: 0,
  backoffBaseMs: 100,
  backoffMaxMs: 300,
};
const SET = keySet(secretSigner('HS256'));

class Bench {
  readonly clock = new ManualClock();
  readonly counted = { fetchSuccess: 0, fetchFailed: 0 };
  /** Calls under way. */
  readonly calls: CallReceiver[] = [];
  asked = 0;
  readonly source: KeySource;

  constructor(settings: Partial<RemoteKeys> = {}) {
    const context = {
      clock: this.clock,
      // As long as there may be.
      random: () => 2 ** 32 - 1,
      call: (_: unknown, receiver: CallReceiver) => {
        this.asked += 1;
        this.calls.push(receiver);
      },
    } as unknown as FilterContext;
    const counter = (name: 'fetchSuccess' | 'fetchFailed') => ({ add: (n: number) => (this.counted[name] += n) });
    this.source = openKeys({ ...SETTINGS, ...settings }, context, {
      fetchSuccess: counter('fetchSuccess'),
      fetchFailed: counter('fetchFailed'),
    });
  }

  answer(text = SET, status = 200): void {
    this.calls.shift()!.onAnswer({ status, body: Buffer.from(text), head: null as never, trailers: null });
  }

  fail(): void {
    this.calls.shift()!.onCallFailure('timeout');
  }

  get hasKeys(): boolean {
    return this.source.keys() !== null;
  }
}

describe('keys of a server', () => {
  it('are asked for once by all who wait, each of whom hears of it once', () => {
    const bench = new Bench();
    const told: string[] = [];
    for (const name of ['a', 'b', 'c']) bench.source.wait(() => told.push(name));
    const callOff = bench.source.wait(() => told.push('gone'));
    callOff();
    assert.equal(bench.asked, 1);
    bench.answer();
    assert.deepEqual(told, ['a', 'b', 'c']);
    assert.deepEqual([bench.hasKeys, bench.asked, bench.counted.fetchSuccess], [true, 1, 1]);
  });

  it('reach all who wait, also where one of them is at fault', () => {
    const bench = new Bench();
    const told: string[] = [];
    bench.source.wait(() => {
      throw new Error('mine');
    });
    bench.source.wait(() => told.push('b'));
    assert.throws(() => bench.answer(), /mine/);
    assert.deepEqual(told, ['b']);
  });

  it('count for their time, and are waited for after it', () => {
    const bench = new Bench();
    bench.source.wait(() => undefined);
    bench.answer();
    bench.clock.turn(9_999);
    assert.equal(bench.hasKeys, true);
    bench.clock.turn(1);
    assert.deepEqual([bench.hasKeys, bench.asked], [false, 1]);
  });

  it('are asked for behind requests where they come early, and count twice as long at most', () => {
    const bench = new Bench({ isEager: true });
    assert.deepEqual([bench.asked, bench.hasKeys], [1, false]);
    bench.answer();
    bench.clock.turn(10_000);
    assert.deepEqual([bench.hasKeys, bench.hasKeys, bench.asked], [true, true, 2]);
    bench.fail();
    // Not at once again.
    assert.deepEqual([bench.hasKeys, bench.asked], [true, 2]);
    bench.clock.turn(500);
    assert.deepEqual([bench.hasKeys, bench.asked], [true, 3]);
    bench.clock.turn(9_500);
    assert.equal(bench.hasKeys, false);
    let isTold = false;
    bench.source.wait((keys) => (isTold = keys !== null));
    assert.equal(bench.asked, 3);
    bench.answer();
    assert.deepEqual([isTold, bench.hasKeys], [true, true]);
  });

  it('are asked for again, with growing waits up to the longest, before anybody hears of a failure', () => {
    const bench = new Bench({ retries: 3 });
    let told = 0;
    bench.source.wait((keys) => {
      assert.equal(keys, null);
      told += 1;
    });
    const limits = [100, 200, 300].map((boundMs) => Math.max(1, (2 ** 32 - 1) % boundMs));
    for (const [at, waitMs] of limits.entries()) {
      bench.answer('', 503);
      bench.clock.turn(waitMs - 1);
      assert.deepEqual([bench.asked, told], [at + 1, 0]);
      bench.clock.turn(1);
      assert.equal(bench.asked, at + 2);
    }
    bench.answer('{}');
    assert.deepEqual([told, bench.hasKeys, bench.counted.fetchFailed], [1, false, 4]);
    bench.source.wait(() => (told += 1));
    assert.equal(bench.asked, 5);
  });
});
