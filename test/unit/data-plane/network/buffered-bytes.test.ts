// The shares of connections in a gauge of bytes that wait.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BufferedBytes } from '../../../../src/data-plane/network/buffered-bytes.ts';

const CELL = 7;
const CONNECTIONS = 3;

test('the gauge is the sum of what waits in each connection, and each knows its own', () => {
  const notes = fc.array(fc.tuple(fc.nat(CONNECTIONS - 1), fc.nat(100_000)));
  fc.assert(
    fc.property(notes, (noted) => {
      const values = new Float64Array(CELL + 2);
      const shares = Array.from({ length: CONNECTIONS }, () => new BufferedBytes({ stats: { values } }, CELL));
      const waiting = new Array<number>(CONNECTIONS).fill(0);
      for (const [connection, bytes] of noted) {
        shares[connection]!.note(bytes);
        waiting[connection] = bytes;
        assert.deepEqual(
          shares.map((share) => share.bytes),
          waiting,
        );
        assert.equal(
          values[CELL],
          waiting.reduce((sum, each) => sum + each),
        );
      }
      for (const share of shares) share.note(0);
      assert.deepEqual([...values], new Array<number>(CELL + 2).fill(0));
    }),
  );
});

test('what has not changed costs no write', () => {
  const written: number[] = [];
  const values = new Proxy<number[]>(new Array<number>(CELL + 1).fill(0), {
    set: (cells, cell, value: number) => {
      written.push(value);
      return Reflect.set(cells, cell, value);
    },
  });
  const share = new BufferedBytes({ stats: { values } }, CELL);
  for (const bytes of [0, 5, 5, 5, 0, 0]) share.note(bytes);
  assert.deepEqual(written, [5, 0]);
});
