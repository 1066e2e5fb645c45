import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type TapEvent, TapMatcher } from '../../../../../src/extensions/filters.http/tap/matcher.ts';
import type { HeaderMatch, TapMatch, TapMessage, TappedFields } from '../../../../../src/snapshot/index.ts';

interface Message {
  readonly headers: TappedFields;
  readonly body: string;
  readonly trailers: TappedFields | null;
}

interface Exchange {
  readonly request: Message;
  /** Null for one that ended before its response. */
  readonly response: Message | null;
}

function has(name: string, value: string): HeaderMatch {
  return { name, test: { kind: 'exact', value, ignoresCase: false }, isInverted: false, treatMissingAsEmpty: false };
}

/** What a whole exchange amounts to. */
function matches(match: TapMatch, exchange: Exchange): boolean {
  switch (match.kind) {
    case 'any':
      return true;
    case 'not':
      return !matches(match.rule, exchange);
    case 'and':
      return match.rules.every((rule) => matches(rule, exchange));
    case 'or':
      return match.rules.some((rule) => matches(rule, exchange));
    case 'body': {
      const body = exchange[match.of]?.body ?? '';
      const seen = match.limitBytes === 0 ? body : body.slice(0, match.limitBytes);
      return match.patterns.every((pattern) => seen.includes(Buffer.from(pattern).toString()));
    }
    case 'headers':
    case 'trailers': {
      const fields = exchange[match.of]?.[match.kind];
      if (fields === undefined || fields === null) return false;
      return match.headers.every(({ name, test: wanted }) =>
        fields.some(([each, value]) => each === name && wanted.kind === 'exact' && wanted.value === value),
      );
    }
  }
}

function* eventsOf(of: TapMessage, { headers, body, trailers }: Message, size: number): Generator<TapEvent> {
  const event = (part: TapEvent['part'], fields: TappedFields, bytes: string): TapEvent => ({
    of,
    part,
    fields,
    bytes: Buffer.from(bytes),
  });
  yield event('headers', headers, '');
  for (let at = 0; at < body.length; at += size) yield event('body', [], body.slice(at, at + size));
  if (trailers !== null) yield event('trailers', trailers, '');
}

const of = fc.constantFrom<TapMessage>('request', 'response');
const header = fc.tuple(fc.constantFrom('x-a', 'x-b'), fc.constantFrom('1', '2'));
/** Each name once: several fields of one name are one value. */
const fields = fc.uniqueArray(header, { maxLength: 2, selector: ([name]) => name });
const text = (maxLength: number) => fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength });

const match = fc.letrec<{ match: TapMatch }>((tie) => ({
  match: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constant<TapMatch>({ kind: 'any' }),
    fc.tuple(fc.constantFrom('headers', 'trailers'), of, fc.array(header, { maxLength: 2 })).map(
      ([kind, message, wanted]): TapMatch => ({
        kind: kind as 'headers' | 'trailers',
        of: message,
        headers: wanted.map(([name, value]) => has(name, value)),
      }),
    ),
    fc.tuple(of, fc.integer({ min: 0, max: 9 }), fc.array(text(4), { minLength: 1, maxLength: 2 })).map(
      ([message, limitBytes, patterns]): TapMatch => ({
        kind: 'body',
        of: message,
        limitBytes,
        patterns: patterns.map((pattern) => Buffer.from(pattern)),
      }),
    ),
    tie('match').map((rule): TapMatch => ({ kind: 'not', rule })),
    fc
      .tuple(fc.constantFrom('and', 'or'), fc.array(tie('match'), { minLength: 2, maxLength: 3 }))
      .map(([kind, rules]): TapMatch => ({ kind: kind as 'and' | 'or', rules })),
  ),
})).match;

const message: fc.Arbitrary<Message> = fc.record({
  headers: fields,
  body: fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 }),
  trailers: fc.option(fields),
});

test('an exchange matches at its end as its whole says, and what is settled before stays', () => {
  fc.assert(
    fc.property(
      match,
      fc.record({ request: message, response: fc.option(message) }),
      fc.integer({ min: 1, max: 5 }),
      (wanted, exchange, size) => {
        const matcher = new TapMatcher(wanted);
        const events = [
          ...eventsOf('request', exchange.request, size),
          ...(exchange.response === null ? [] : eventsOf('response', exchange.response, size)),
        ];
        let settled: boolean | undefined;
        for (const event of events) {
          matcher.see(event);
          if (settled !== undefined) assert.equal(matcher.matches, settled);
          if (matcher.isSettled) settled = matcher.matches;
        }
        assert.equal(matcher.matches, matches(wanted, exchange));
      },
    ),
    { numRuns: 500 },
  );
});

test('a condition is settled by the part that it looks at', () => {
  const matcher = new TapMatcher({ kind: 'headers', of: 'response', headers: [has('x-a', '1')] });
  const seen = (event: Partial<TapEvent>): [boolean, boolean] => {
    matcher.see({ of: 'request', part: 'headers', fields: [], bytes: Buffer.alloc(0), ...event });
    return [matcher.isSettled, matcher.matches];
  };
  assert.deepEqual(seen({ fields: [['x-a', '1']] }), [false, false]);
  assert.deepEqual(seen({ of: 'response', part: 'body', bytes: Buffer.from('x') }), [false, false]);
  assert.deepEqual(seen({ of: 'response', fields: [['x-a', '1']] }), [true, true]);
});

test('several fields of one name are one value', () => {
  const matcher = new TapMatcher({ kind: 'headers', of: 'request', headers: [has('x-a', '1,2')] });
  matcher.see({
    of: 'request',
    part: 'headers',
    fields: [
      ['x-a', '1'],
      ['x-a', '2'],
    ],
    bytes: Buffer.alloc(0),
  });
  assert.equal(matcher.matches, true);
});
