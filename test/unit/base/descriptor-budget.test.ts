import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { descriptorBudget, descriptorOf } from '../../../src/base/descriptor-budget.ts';

describe('the budget of descriptors', () => {
  it('holds some back from clients, fewer from upstreams, fewest from operators', () => {
    for (let limit = 64; limit <= 2 ** 20; limit *= 2) {
      const { acceptBelow, connectBelow, administerBelow } = descriptorBudget(limit);
      const bounds = [0, acceptBelow, connectBelow, administerBelow, limit];
      assert.deepEqual(
        bounds,
        bounds.toSorted((a, b) => a - b),
      );
      assert.equal(new Set(bounds).size, bounds.length);
      assert.ok(acceptBelow >= limit / 2, `${limit}: ${acceptBelow}`);
      assert.ok(limit - administerBelow >= 4);
    }
  });

  it('holds nothing back where the limit is not known', () => {
    assert.deepEqual(new Set(Object.values(descriptorBudget(undefined))), new Set([Number.POSITIVE_INFINITY]));
  });

  it('may tell from its number how many descriptors are in use: the system hands out the lowest', () => {
    const first = openSync('/dev/null', 'r');
    const second = openSync('/dev/null', 'r');
    closeSync(first);
    const third = openSync('/dev/null', 'r');
    closeSync(second);
    closeSync(third);
    assert.equal(third, first);
  });

  it('sees the descriptor of a socket that has one', async () => {
    await using server = createServer();
    assert.equal(descriptorOf(server), -1);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    assert.ok(descriptorOf(server) > 2);
  });
});
