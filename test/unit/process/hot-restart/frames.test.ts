import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FrameReader, frameOf } from '../../../../src/process/hot-restart/frames.ts';

describe('frames', () => {
  it('are read whole, wherever the bytes were cut', () => {
    const messages = fc.array(fc.object({ values: [fc.string({ unit: 'binary' }), fc.nat(), fc.constant(null)] }));
    fc.assert(
      fc.property(messages, fc.array(fc.integer({ min: 1, max: 9 })), (given, cuts) => {
        const sent = given.map((message) => JSON.parse(JSON.stringify(message)) as object);
        const bytes = Buffer.concat(sent.map(frameOf));
        const reader = new FrameReader();
        const read: unknown[] = [];
        let at = 0;
        for (let cut = 0; at < bytes.length; cut++) {
          const end = at + (cuts[cut] ?? bytes.length);
          read.push(...reader.read(bytes.subarray(at, end)));
          at = end;
        }
        assert.deepEqual(read, sent);
      }),
    );
  });

  for (const { name, bytes, says } of [
    { name: 'too long', bytes: Buffer.from([0x7f, 0, 0, 0]), says: /too long/ },
    { name: 'no JSON', bytes: Buffer.from([0, 0, 0, 1, 0x7b]), says: /no JSON/ },
  ]) {
    it(`are refused when they are ${name}`, () => {
      assert.throws(() => new FrameReader().read(bytes), says);
    });
  }
});
