import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ReplayBuffer } from '../../../../src/data-plane/router/replay-buffer.ts';

describe('a body that is kept to be sent again', () => {
  test('is all that has come, whatever its pieces were', () => {
    const pieces = fc.array(fc.tuple(fc.string(), fc.string(), fc.string()), { maxLength: 20 });
    fc.assert(
      fc.property(pieces, (parts) => {
        const kept = new ReplayBuffer(1_000_000);
        for (const [before, text, after] of parts) {
          const start = Buffer.byteLength(before);
          const bytes = Buffer.from(before + text + after);
          assert.ok(kept.add(bytes, start, start + Buffer.byteLength(text)));
        }
        assert.equal(kept.copy().toString(), parts.map(([, text]) => text).join(''));
      }),
    );
  });

  test('is not longer than its limit, and not a byte shorter', () => {
    const kept = new ReplayBuffer(10);
    const bytes = Buffer.from('0123456789');
    assert.ok(kept.add(bytes, 2, 6));
    assert.ok(!kept.add(bytes, 0, 7));
    assert.ok(kept.add(bytes, 4, 10));
    assert.ok(kept.add(bytes, 3, 3));
    assert.ok(!kept.add(bytes, 0, 1));
    assert.equal(kept.copy().toString(), '2345456789');
  });

  test('is nobody else’s memory', () => {
    const kept = new ReplayBuffer(10);
    const bytes = Buffer.from('abc');
    kept.add(bytes, 0, 3);
    bytes.fill('x');
    const first = kept.copy();
    assert.equal(first.toString(), 'abc');
    first.fill('y');
    assert.equal(kept.copy().toString(), 'abc');
  });
});
