import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestIds } from '../../../../src/data-plane/http/request-id.ts';

const LINE = /^x-request-id: [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('every request identifier is a random UUID in its header line, and none comes twice', () => {
  const ids = new RequestIds();
  const seen = new Set<string>();
  // Further than one page of random numbers goes.
  for (let made = 0; made < 1000; made += 1) {
    const line = ids.nextLine().toString('latin1');
    assert.match(line, LINE);
    seen.add(line);
  }
  assert.equal(seen.size, 1000);
});

test('all digits of a request identifier are random but those of version and variant', () => {
  const ids = new RequestIds();
  const seen = Array.from({ length: 36 }, () => new Set<string>());
  for (let made = 0; made < 1000; made += 1) {
    const id = ids.nextLine().toString('latin1').slice('x-request-id: '.length);
    for (const [index, digit] of [...id].entries()) seen[index]!.add(digit);
  }
  const expected = Array.from('xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx', (c) => (c === 'x' ? 16 : c === 'y' ? 4 : 1));
  assert.deepEqual(
    seen.map((digits) => digits.size),
    expected,
  );
});
