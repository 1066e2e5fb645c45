// The hosts of a cluster when main says who is there now.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { orderHosts } from '../../../../src/data-plane/upstream/host-order.ts';

interface Member {
  readonly record: number;
}

/** Hosts of the records before; new ones among those of now are other objects. */
function ordered(before: readonly number[], now: readonly number[]) {
  const former = before.map((record): Member => ({ record }));
  const fresh = now.filter((record) => !before.includes(record)).map((record): Member => ({ record }));
  const added = new Map(fresh.map((host) => [host.record, host]));
  return { former, fresh, ...orderHosts(former, now, added) };
}

const records = (hosts: readonly Member[]): number[] => hosts.map(({ record }) => record);

describe('the order of hosts', () => {
  const cases: readonly (readonly [string, number[], number[], leaving: number[]])[] = [
    ['the same', [1, 2, 3], [1, 2, 3], []],
    ['the first', [], [1, 2], []],
    ['none any more', [1, 2], [], [1, 2]],
    ['one less at the beginning', [1, 2, 3], [2, 3], [1]],
    ['several less in the middle', [1, 2, 3, 4, 5], [1, 5], [2, 3, 4]],
    ['one less at the end', [1, 2, 3], [1, 2], [3]],
    ['one more in the middle', [1, 3], [1, 2, 3], []],
    ['one in the place of another', [1, 2, 3], [1, 4, 3], [2]],
    ['all others', [1, 2], [3, 4], [1, 2]],
    ['the same in other places', [1, 2, 3], [3, 1, 2], []],
    ['others in other places', [1, 2, 3, 4], [4, 5, 1], [2, 3]],
  ];
  for (const [name, before, now, leaving] of cases) {
    test(`is that of main: ${name}`, () => {
      const result = ordered(before, now);
      assert.deepEqual(records(result.hosts), now);
      assert.deepEqual(records(result.leaving), leaving);
    });
  }

  test('keeps those that stay, takes those that are new, and loses nobody', () => {
    const some = fc.uniqueArray(fc.nat(12));
    fc.assert(
      fc.property(some, some, (before, now) => {
        const { former, fresh, hosts, leaving } = ordered(before, now);
        assert.deepEqual(records(hosts), now);
        assert.deepEqual(
          leaving,
          former.filter(({ record }) => !now.includes(record)),
        );
        for (const host of hosts) assert.ok(former.includes(host) || fresh.includes(host));
        assert.equal(new Set([...hosts, ...leaving]).size, new Set([...before, ...now]).size);
      }),
    );
  });

  test('is found in one walk where hosts that stay keep their places', () => {
    let reads = 0;
    const former = Array.from({ length: 10_000 }, (_, index) => ({
      get record() {
        reads += 1;
        return index;
      },
    }));
    const fresh = { record: 20_000 };
    const order = former.map((_, index) => index).toSpliced(5000, 1, fresh.record);
    const { hosts, leaving } = orderHosts(former, order, new Map([[fresh.record, fresh]]));
    assert.deepEqual([hosts.length, hosts[5000]], [10_000, fresh]);
    assert.deepEqual(leaving, [former[5000]]);
    assert.ok(reads <= 10_002, `${reads} looks`);
  });
});
