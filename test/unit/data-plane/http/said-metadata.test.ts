// What filters say of a request is the same whether it is put together at once or when somebody reads it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { SaidMetadata } from '../../../../src/data-plane/http/said-metadata.ts';
import type { Metadata } from '../../../../src/snapshot/index.ts';

const saying = fc.record({
  namespace: fc.constantFrom('a', 'b'),
  values: fc.dictionary(fc.constantFrom('x', 'y', 'z'), fc.integer(), { maxKeys: 2, noNullPrototype: true }),
});

describe('metadata that filters have said', () => {
  it('is what saying by saying would have made of it, and leaves what was there before', () => {
    fc.assert(
      fc.property(fc.array(saying, { minLength: 1, maxLength: 20 }), fc.boolean(), (sayings, hasKnown) => {
        const known: Metadata | undefined = hasKnown ? { a: { x: -1, w: -2 } } : undefined;
        let said: SaidMetadata | null = null;
        let expected: Record<string, Record<string, unknown>> = { ...known };
        for (const { namespace, values } of sayings) {
          said = new SaidMetadata(namespace, values, said);
          expected = { ...expected, [namespace]: { ...expected[namespace], ...values } };
        }
        assert.equal(said?.count, sayings.length);
        assert.deepEqual(said?.addedTo(known), expected);
        assert.deepEqual(known, hasKnown ? { a: { x: -1, w: -2 } } : undefined);
      }),
    );
  });
});
