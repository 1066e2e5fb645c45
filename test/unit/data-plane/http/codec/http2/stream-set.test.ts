import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { ExchangeList, type ListedExchange } from '../../../../../../src/data-plane/http/codec/http2/exchange-list.ts';
import { LARGEST_WINDOW } from '../../../../../../src/data-plane/http/codec/http2/frames.ts';
import { SessionStream } from '../../../../../../src/data-plane/http/codec/http2/session-stream.ts';
import { StreamSet } from '../../../../../../src/data-plane/http/codec/http2/stream-set.ts';

class Exchange implements ListedExchange<Exchange> {
  isListed = false;
  previousListed: Exchange | null = null;
  nextListed: Exchange | null = null;
}

/** What happens one after the other: the next stream is so many numbers on, or the one of that many that are open ends. */
const STEPS = fc.array(fc.oneof(fc.record({ opens: fc.nat(200) }), fc.record({ ends: fc.nat() })), { maxLength: 400 });

function opened(set: StreamSet, count: number): SessionStream[] {
  return Array.from({ length: count }, () => {
    const stream = new SessionStream(set.nextId, 0);
    set.add(stream);
    return stream;
  });
}

describe('the streams of a session', () => {
  it('are those that have been added and not deleted, whatever their numbers', () => {
    fc.assert(
      fc.property(STEPS, (steps) => {
        const set = new StreamSet(true);
        const model = new Map<number, SessionStream>();
        let last = -1;
        for (const step of steps) {
          if ('opens' in step) {
            last += 2 + 2 * step.opens;
            const stream = new SessionStream(last, 0);
            assert.equal(set.has(stream), false);
            set.add(stream);
            model.set(last, stream);
          } else if (model.size > 0) {
            const stream = [...model.values()][step.ends % model.size]!;
            set.delete(stream);
            model.delete(stream.id);
            assert.equal(set.get(stream.id), undefined);
            assert.equal(set.has(stream), false);
            assert.equal(stream.nextInBucket, null);
            // Again, it changes nothing.
            set.delete(stream);
          }
          assert.equal(set.size, model.size);
        }
        assert.deepEqual(
          set.all().map(({ id }) => id),
          [...model.keys()],
        );
        for (const [id, stream] of model) {
          assert.equal(set.get(id), stream);
          assert.equal(set.has(stream), true);
          assert.equal(set.get(id + 1), undefined);
        }
      }),
    );
  });

  it('are found among many', () => {
    const set = new StreamSet(false);
    for (let round = 0; round < 2; round += 1) {
      const streams = opened(set, 5000);
      for (const stream of streams) assert.equal(set.get(stream.id), stream);
      for (const stream of streams.toReversed()) set.delete(stream);
      assert.equal(set.size, 0);
      assert.deepEqual(set.all(), []);
      assert.equal(set.isIdle(streams.at(-1)!.id), false);
      assert.equal(set.isIdle(set.nextId), true);
    }
  });

  it('of a client have the numbers of their turn, up to the last one', () => {
    const set = new StreamSet(false);
    set.add(new SessionStream(1, 0));
    // One of the peer's does not count.
    set.add(new SessionStream(2, 0));
    assert.equal(set.nextId, 3);
    assert.equal(set.get(2)?.id, 2);
    assert.equal(set.get(LARGEST_WINDOW), undefined);
  });
});

describe('the exchanges of a connection', () => {
  it('are those that have been added and not deleted, in their order', () => {
    fc.assert(
      fc.property(STEPS, (steps) => {
        const list = new ExchangeList<Exchange>();
        const model = new Set<Exchange>();
        for (const step of steps) {
          if ('opens' in step) {
            const exchange = new Exchange();
            assert.equal(list.delete(exchange), false);
            list.add(exchange);
            model.add(exchange);
          } else if (model.size > 0) {
            const exchange = [...model][step.ends % model.size]!;
            model.delete(exchange);
            assert.equal(list.delete(exchange), true);
            assert.equal(list.delete(exchange), false);
            assert.deepEqual([exchange.previousListed, exchange.nextListed], [null, null]);
          }
          assert.equal(list.size, model.size);
          // By identity: the members differ in nothing else.
          assert.ok(list.all().every((exchange, at) => exchange === [...model][at]));
        }
      }),
    );
  });
});

describe('what has ended', () => {
  let collect: (options: { readonly type: 'minor' | 'major' }) => void;
  before(() => {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc');
  });

  const oldBytes = (): number =>
    getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')!.space_used_size;

  const OPEN = 100;
  /** Between two collections, as many as a Map or a Set for so many is made anew for: it would be kept, and lead to the next one. */
  const OPENED = 100;
  /** Of each some hundred bytes would stay. */
  const ENDED = 40_000;
  const LIMIT_BYTES = 1024 * 1024;

  /** @param open puts something new in the place of what it returned so many calls ago. */
  function grown(open: (at: number) => void): number {
    const run = (count: number): void => {
      for (let at = 0; at < count; at += 1) {
        open(at % OPEN);
        if (at % OPENED === 0) collect({ type: 'minor' });
      }
    };
    run(5000);
    const bytes = oldBytes();
    run(ENDED);
    return oldBytes() - bytes;
  }

  it('leaves no large table behind', () => {
    const sets = Array.from({ length: 100 }, () => new StreamSet(false));
    const heapBytes = (): number => {
      collect({ type: 'major' });
      return getHeapStatistics().used_heap_size;
    };
    const fill = (): void => {
      for (const set of sets) {
        for (const stream of opened(set, 5000)) set.delete(stream);
      }
    };
    const bytes = heapBytes();
    fill();
    const kept = heapBytes() - bytes;
    assert.ok(kept < LIMIT_BYTES, `${kept} bytes are still there`);
    assert.equal(sets.length, 100);
  });

  it('is collected with what is young: no stream', () => {
    const set = new StreamSet(false);
    const streams: SessionStream[] = [];
    const bytes = grown((at) => {
      if (streams[at] !== undefined) set.delete(streams[at]);
      streams[at] = new SessionStream(set.nextId, 0);
      set.add(streams[at]);
    });
    assert.ok(bytes < LIMIT_BYTES, `${bytes} bytes are still there`);
  });

  it('is collected with what is young: no exchange', () => {
    const list = new ExchangeList<Exchange>();
    const exchanges: Exchange[] = [];
    const bytes = grown((at) => {
      if (exchanges[at] !== undefined) list.delete(exchanges[at]);
      exchanges[at] = new Exchange();
      list.add(exchanges[at]);
    });
    assert.ok(bytes < LIMIT_BYTES, `${bytes} bytes are still there`);
  });
});
