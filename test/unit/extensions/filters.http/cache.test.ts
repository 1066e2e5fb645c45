// What a cache keeps, for how long, and what it gives of it: directives, ages, bounds and ranges.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { answerOf } from '../../../../src/extensions/filters.http/cache/answer.ts';
import { parseCacheControl } from '../../../../src/extensions/filters.http/cache/cache-control.ts';
import { datesOf, freshnessFor, secondsOfDate } from '../../../../src/extensions/filters.http/cache/freshness.ts';
import { ResponseStore } from '../../../../src/extensions/filters.http/cache/store.ts';
import type { StoredResponse } from '../../../../src/extensions/filters.http/cache/stored-response.ts';

const NOTHING = parseCacheControl(undefined);
const seconds = fc.integer({ min: 0, max: 1000 });

const reading = (fields: Readonly<Record<string, string>>) => (name: string) => fields[name];
const dateOf = (at: number): string => new Date(at * 1000).toUTCString();

describe('directives', () => {
  test('are read whatever their case, order and quotes, with unknown ones between them', () => {
    const directives = fc.shuffledSubarray([
      'no-store',
      'No-Cache',
      'private="a, no-store2"',
      'x-unknown="max-age=9"',
      'max-age=5',
      's-maxage="6"',
      'must-revalidate',
    ]);
    fc.assert(
      fc.property(directives, (said) => {
        const found = parseCacheControl(said.join(' , '));
        const has = (text: string) => said.includes(text);
        assert.deepEqual(
          [found.noStore, found.noCache, found.isPrivate, found.maxAge, found.sMaxAge, found.mustRevalidate],
          [
            has('no-store'),
            has('No-Cache'),
            has('private="a, no-store2"'),
            has('max-age=5') ? 5 : undefined,
            has('s-maxage="6"') ? 6 : undefined,
            has('must-revalidate'),
          ],
        );
      }),
    );
  });

  test('that make no sense keep least', () => {
    for (const text of ['max-age', 'max-age=', 'max-age=x', 'max-age=-1', 'max-age=1.5', 'max-age=9, max-age=x']) {
      assert.equal(parseCacheControl(text).maxAge, 0, text);
    }
    assert.equal(parseCacheControl('max-age=99999999999999999999').maxAge, 2 ** 31);
    assert.equal(parseCacheControl('max-stale').maxStale, Number.POSITIVE_INFINITY);
    assert.equal(parseCacheControl('max-stale=5').maxStale, 5);
    assert.equal(parseCacheControl('max-stale=x').maxStale, 0);
  });
});

describe('the age of a response', () => {
  test('is what it has said, or how long ago it was made, and the time that it took', () => {
    fc.assert(
      fc.property(seconds, seconds, seconds, (madeBefore, age, took) => {
        const receivedAt = 1_000_000_000;
        const read = reading({ date: dateOf(receivedAt - madeBefore), age: String(age) });
        const { initialAge } = datesOf(read, receivedAt - took, receivedAt);
        assert.equal(initialAge, Math.max(madeBefore, age + took));
      }),
    );
  });

  test('is that of its way alone where it says nothing of use', () => {
    for (const fields of [{}, { date: 'today', age: 'old' }, { date: dateOf(2_000), age: '1, 2' }] as Record<
      string,
      string
    >[]) {
      assert.equal(datesOf(reading(fields), 990, 1_000).initialAge, 10);
    }
  });

  test('dates are those of HTTP, of any of its forms', () => {
    for (const text of [
      'Sun, 06 Nov 1994 08:49:37 GMT',
      'Sunday, 06-Nov-94 08:49:37 GMT',
      'Sun Nov  6 08:49:37 1994 GMT',
    ]) {
      assert.equal(secondsOfDate(text), 784_111_777, text);
    }
    for (const text of ['0', '-1', '', '2020', 'Sun, 99 Nov 1994 08:49:37 GMT'])
      assert.equal(secondsOfDate(text), undefined, text);
  });
});

describe('freshness', () => {
  /** RFC 9111, said once more: what may be given of a response with max-age, without asking. */
  test('is what the response and the request agree on', () => {
    const optional = fc.option(seconds, { nil: undefined });
    const request = fc.record({ noCache: fc.boolean(), maxAge: optional, minFresh: optional, maxStale: optional });
    const response = fc.record({ noCache: fc.boolean(), mustRevalidate: fc.boolean() });
    fc.assert(
      fc.property(seconds, seconds, request, response, (lifetime, age, asked, said) => {
        const control = { ...NOTHING, ...said };
        const isFresh = freshnessFor({ control, lifetime }, age, { ...NOTHING, ...asked }) === 'fresh';
        const stale = age - lifetime;
        const staleLimit = said.mustRevalidate || (asked.minFresh ?? 0) > 0 ? -1 : (asked.maxStale ?? -1);
        const expected =
          !said.noCache &&
          !asked.noCache &&
          age <= (asked.maxAge ?? Number.POSITIVE_INFINITY) &&
          (stale < 0 ? -stale >= (asked.minFresh ?? 0) : stale <= staleLimit);
        assert.equal(isFresh, expected);
      }),
    );
  });

  test('never comes back as time passes, for whatever request', () => {
    fc.assert(
      fc.property(seconds, seconds, seconds, fc.boolean(), (lifetime, age, later, isHeard) => {
        const dates = { control: NOTHING, lifetime };
        const request = isHeard ? NOTHING : null;
        if (freshnessFor(dates, age + later, request) === 'fresh')
          assert.equal(freshnessFor(dates, age, request), 'fresh');
      }),
    );
  });
});

function responseOf(
  body: Buffer,
  fields: StoredResponse['fields'] = [],
  vary: StoredResponse['vary'] = [],
): StoredResponse {
  const dates = { control: NOTHING, lifetime: 1, initialAge: 0 };
  return {
    status: 200,
    fields,
    body,
    dates,
    receivedMonotonic: 0,
    etag: undefined,
    lastModified: undefined,
    cluster: 'c',
    vary,
  };
}

describe('what is kept', () => {
  test('stays within its bounds, and is what was put last, however it comes and goes', () => {
    const key = fc.constantFrom('a', 'b', 'c');
    const variant = fc.constantFrom('1', '2', '3', undefined);
    const step = fc.oneof(
      fc.record({ kind: fc.constant('put' as const), key, variant, size: fc.integer({ min: 0, max: 3000 }) }),
      fc.record({ kind: fc.constant('find' as const), key, variant }),
      fc.record({ kind: fc.constant('remove' as const), key }),
    );
    const limits = { maxBytes: 12_000, maxEntries: 6, maxVariants: 2 };
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let evicted = 0;
        const store = new ResponseStore(limits, () => {
          evicted += 1;
        });
        const model = new Map<string, StoredResponse>();
        let live = 0;
        for (const each of steps) {
          if (each.kind === 'remove') live -= store.remove(each.key);
          else if (each.kind === 'put') {
            const name = `${each.key}${each.variant}`;
            const response = responseOf(Buffer.alloc(each.size), [], [['x', each.variant]]);
            const isReplaced = store.find(each.key, 'c', () => each.variant) !== undefined;
            assert.equal(store.put(each.key, response), true);
            live += isReplaced ? 0 : 1;
            model.set(name, response);
          } else {
            const found = store.find(each.key, 'c', () => each.variant);
            if (found !== undefined) assert.equal(found, model.get(`${each.key}${each.variant}`));
            assert.equal(
              store.find(each.key, 'other', () => each.variant),
              undefined,
            );
          }
          assert.ok(store.bytes <= limits.maxBytes && store.entries <= limits.maxEntries);
          assert.equal(store.entries, live - evicted);
          const variants = ['1', '2', '3', undefined].filter(
            (value) => store.find(each.key, 'c', () => value) !== undefined,
          );
          assert.ok(variants.length <= limits.maxVariants);
        }
        for (const each of ['a', 'b', 'c']) assert.ok(store.remove(each) <= limits.maxVariants);
        assert.deepEqual([store.entries, store.bytes], [0, 0]);
      }),
    );
  });

  test('makes room by what was asked for least recently', () => {
    const store = new ResponseStore({ maxBytes: 1e6, maxEntries: 2, maxVariants: 2 }, () => {});
    const put = (key: string) => store.put(key, responseOf(Buffer.from(key)));
    const isThere = (key: string) => store.find(key, 'c', () => undefined) !== undefined;
    put('a');
    put('b');
    assert.ok(isThere('a'));
    put('c');
    assert.deepEqual(['a', 'b', 'c'].map(isThere), [true, false, true]);
  });

  test('is nothing that is larger than all of it, and what was there stays', () => {
    const store = new ResponseStore({ maxBytes: 5000, maxEntries: 9, maxVariants: 2 }, () => assert.fail());
    assert.equal(store.put('a', responseOf(Buffer.alloc(10))), true);
    assert.equal(store.put('b', responseOf(Buffer.alloc(5000))), false);
    assert.equal(store.entries, 1);
  });
});

test('a range brings the bytes that it names, and says which', () => {
  const none = { ifNoneMatch: undefined, ifModifiedSince: undefined };
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 40 }),
      fc.nat(50),
      fc.option(fc.nat(50)),
      fc.boolean(),
      (bytes, first, last, isSuffix) => {
        const body = Buffer.from(bytes);
        const range = isSuffix ? `bytes=-${first}` : `bytes=${first}-${last ?? ''}`;
        const answer = answerOf(responseOf(body), { ...none, range }, 0);
        if (answer.status === 200) {
          assert.ok(!isSuffix && last !== null && last < first);
          assert.deepEqual(answer.body, body);
          return;
        }
        const expected = isSuffix
          ? body.subarray(first === 0 ? body.length : -first)
          : body.subarray(first, last === null ? undefined : last + 1);
        assert.deepEqual([answer.body, answer.status], [expected, expected.length === 0 ? 416 : 206]);
        const [, text = ''] = answer.fields.find(([name]) => name === 'content-range')!;
        const from = isSuffix ? body.length - expected.length : first;
        assert.equal(
          text,
          expected.length === 0
            ? `bytes */${body.length}`
            : `bytes ${from}-${from + expected.length - 1}/${body.length}`,
        );
      },
    ),
  );
});
