// Fields of a head as things stand: what look-ups by name find is what the list of all fields says, whatever has been added and
// removed, and in whichever way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compileHttp1, HEADER_ID, Http1Codec, PreparedLines } from '../../src/wasm/http1.ts';

const LIMITS = { maxHeadBytes: 61440, maxFields: 100 };
/** Some are parts of others, or stand in values. */
const NAMES = ['a', 'ab', 'b', 'x-a', 'a-x', 'date', 'ba'];

const name = fc.constantFrom(...NAMES);
const value = fc.constantFrom('', '1', 'a: 2', 'ab', 'x-a: b:', 'b');
const step = fc.oneof(
  fc.record({ kind: fc.constant('append'), name, value }),
  fc.record({ kind: fc.constant('upper'), name, value }),
  fc.record({ kind: fc.constant('line'), name, value }),
  fc.record({ kind: fc.constant('prepared'), name, value }),
  fc.record({ kind: fc.constant('remove'), name, value }),
);

test('a look-up by name finds what the list of all fields has', () => {
  const codec = new Http1Codec(compileHttp1());
  const received = fc.array(fc.tuple(name, value), { maxLength: 4 });
  fc.assert(
    fc.property(received, fc.array(step, { maxLength: 8 }), (fields, steps) => {
      const text = `HTTP/1.1 200 OK\r\n${fields.map(([key, said]) => `${key}: ${said}\r\n`).join('')}\r\n`;
      const bytes = Buffer.from(text);
      codec.parseResponse(bytes, 0, bytes.length, LIMITS, 0);
      const head = codec.response;
      for (const { kind, name: key, value: said } of steps) {
        if (kind === 'append') head.append(key, said);
        else if (kind === 'upper') head.append(key.toUpperCase(), said);
        else if (kind === 'line') head.appendLine(`${key}: ${said}`);
        else if (kind === 'prepared') head.appendPrepared(new PreparedLines([`${key}: ${said}`, `B: ${said}`]));
        else head.removeField(key);
        const entries = head.entries();
        for (const asked of NAMES) {
          const values = entries.filter(([one]) => one === asked).map(([, one]) => one);
          assert.equal(head.hasField(asked), values.length > 0, asked);
          if (asked === 'date') assert.equal(head.hasKnownField(HEADER_ID.date, asked), values.length > 0, asked);
          assert.equal(head.headerByName(asked), values.length === 0 ? undefined : values.join(', '), asked);
        }
      }
    }),
    { numRuns: 500 },
  );
});
