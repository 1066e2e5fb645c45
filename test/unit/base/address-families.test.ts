// The order in which addresses of both families are tried: cases of RFC 8305, and what holds for every list.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { IpAddress } from '../../../src/base/address.ts';
import { ALTERNATING, familyOf, inFamilyOrder } from '../../../src/base/address-families.ts';

const at = (ip: string): IpAddress => ({ kind: 'ip', ip, port: 80 });
const ordered = (ips: readonly string[], ...order: [order?: Parameters<typeof inFamilyOrder>[1]]): string[] =>
  inFamilyOrder(ips.map(at), order[0] ?? ALTERNATING).map(({ ip }) => ip);

describe('addresses of one host', () => {
  test('alternate, beginning with the family of the first', () => {
    assert.deepEqual(ordered(['1.1.1.1', '1.1.1.2', '::1', '::2', '::3']), ['1.1.1.1', '::1', '1.1.1.2', '::2', '::3']);
    assert.deepEqual(ordered(['::1', '::2', '1.1.1.1']), ['::1', '1.1.1.1', '::2']);
  });

  test('begin with the family that is asked for, some of it before each of the other', () => {
    const ips = ['1.1.1.1', '1.1.1.2', '::1', '::2', '::3', '::4', '::5'];
    assert.deepEqual(ordered(ips, { first: 'v6', firstCount: 3 }), [
      '::1',
      '::2',
      '::3',
      '1.1.1.1',
      '::4',
      '::5',
      '1.1.1.2',
    ]);
  });

  test('stay as they are where there is one family only', () => {
    assert.deepEqual(ordered(['1.1.1.2', '1.1.1.1'], { first: 'v6', firstCount: 1 }), ['1.1.1.2', '1.1.1.1']);
  });

  test('all come once, each family in its order, and never more of the first than it may have in a row', () => {
    const ip = fc.oneof(fc.ipV4(), fc.ipV6());
    const first = fc.constantFrom('v4', 'v6', undefined);
    fc.assert(
      fc.property(
        fc.array(ip, { minLength: 1, maxLength: 20 }),
        first,
        fc.integer({ min: 1, max: 5 }),
        (ips, family, firstCount) => {
          const result = ordered(ips, { first: family, firstCount });
          for (const each of ['v4', 'v6'] as const) {
            const of = (list: readonly string[]): string[] => list.filter((one) => familyOf(one) === each);
            assert.deepEqual(of(result), of(ips));
          }
          const firstFamily = family ?? familyOf(ips[0]!);
          const otherLeft = (from: number): boolean => result.slice(from).some((one) => familyOf(one) !== firstFamily);
          let row = 0;
          for (const [index, one] of result.entries()) {
            row = familyOf(one) === firstFamily ? row + 1 : 0;
            assert.ok(row <= firstCount || !otherLeft(index));
          }
        },
      ),
    );
  });
});
