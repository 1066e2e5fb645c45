// What filters tell their like: who hears it and when, how much goes at a time, and what becomes of too much.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FilterNewsExchange } from '../../../../src/data-plane/http/filter-news.ts';
import type { FilterNews } from '../../../../src/snapshot/index.ts';

interface Bench {
  readonly exchange: FilterNewsExchange;
  readonly sent: (readonly FilterNews[])[];
  readonly faults: unknown[];
  /** By the topic `a`. */
  readonly heard: (readonly string[] | null)[];
}

function bench(): Bench {
  const sent: (readonly FilterNews[])[] = [];
  const faults: unknown[] = [];
  const heard: (readonly string[] | null)[] = [];
  const exchange = new FilterNewsExchange(
    (news) => void sent.push(news),
    (error) => void faults.push(error),
  );
  exchange.listen('a', (texts) => void heard.push(texts));
  return { exchange, sent, faults, heard };
}

/** What has been asked for in this turn has happened then. */
const turn = (): Promise<void> => Promise.resolve();

describe('what a filter tells', () => {
  test('is heard here at once, and goes out together at the end of the turn', async () => {
    const { exchange, sent, heard } = bench();
    exchange.tell('a', 'one');
    exchange.tell('b', 'else');
    exchange.tell('a', 'two');
    assert.deepEqual(heard, [['one'], ['two']]);
    assert.deepEqual(sent, []);
    await turn();
    assert.deepEqual(sent, [
      [
        { topic: 'a', texts: ['one', 'two'] },
        { topic: 'b', texts: ['else'] },
      ],
    ]);
  });

  test('waits until main has taken what went before', async () => {
    const { exchange, sent } = bench();
    exchange.tell('a', 'one');
    await turn();
    exchange.tell('a', 'two');
    await turn();
    exchange.tell('a', 'three');
    await turn();
    assert.equal(sent.length, 1);
    exchange.taken();
    assert.deepEqual(sent[1], [{ topic: 'a', texts: ['two', 'three'] }]);
    exchange.taken();
    assert.equal(sent.length, 2);
    exchange.tell('a', 'four');
    await turn();
    assert.deepEqual(sent[2], [{ topic: 'a', texts: ['four'] }]);
  });

  test('is all of it where there is too much to be told, by number or by length', async () => {
    for (const [count, text] of [
      [1001, 'x'],
      [5, 'x'.repeat(64 * 1024)],
    ] as const) {
      const { exchange, sent } = bench();
      for (let index = 0; index < count; index += 1) exchange.tell('a', text);
      await turn();
      assert.deepEqual(sent, [[{ topic: 'a', texts: null }]]);
      exchange.taken();
      exchange.tell('a', 'one');
      await turn();
      assert.deepEqual(sent[1], [{ topic: 'a', texts: ['one'] }]);
    }
  });

  test('comes from other workers to those who still listen', () => {
    const { exchange, sent, heard, faults } = bench();
    const leave = exchange.listen('b', () => {
      throw new Error('a bug');
    });
    exchange.told([
      { topic: 'a', texts: null },
      { topic: 'b', texts: ['x'] },
      { topic: 'c', texts: ['x'] },
    ]);
    assert.deepEqual(heard, [null]);
    assert.equal(faults.length, 1);
    leave();
    exchange.told([{ topic: 'b', texts: ['x'] }]);
    assert.equal(faults.length, 1);
    assert.deepEqual(sent, []);
  });
});
