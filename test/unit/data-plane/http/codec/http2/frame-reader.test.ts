import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type FrameHandler, FrameReader } from '../../../../../../src/data-plane/http/codec/http2/frame-reader.ts';
import { FrameFlag, FrameType } from '../../../../../../src/data-plane/http/codec/http2/frames.ts';
import { frame } from '../../../../../support/http2-session.ts';

/** What a reader tells, with the content of a frame joined however it came. */
class Listener implements FrameHandler {
  readonly told: string[] = [];
  #content = '';

  onFrameStart(type: number, flags: number, streamId: number, length: number): boolean {
    this.told.push(`start ${type} ${flags} ${streamId} ${length}`);
    return true;
  }

  onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    this.told.push(`frame ${type} ${flags} ${streamId} ${bytes.toString('hex', start, end)}`);
    return true;
  }

  onData(bytes: Buffer, start: number, end: number, _padding: number, isLast: boolean): boolean {
    this.#content += bytes.toString('hex', start, end);
    if (isLast) this.told.push(`content ${this.#content}`);
    if (isLast) this.#content = '';
    return true;
  }

  onBadPadding(): void {
    this.told.push('bad padding');
  }
}

const FRAMES = fc.array(
  fc.record({
    type: fc.constantFrom(FrameType.DATA, FrameType.HEADERS, FrameType.PING, 0xff),
    flags: fc.nat(255).map((flags) => flags & ~FrameFlag.PADDED),
    streamId: fc.nat(0x7fff_ffff),
    payload: fc.uint8Array({ maxLength: 300 }),
  }),
  { maxLength: 12 },
);

test('frames are told alike however they are cut, with each field of their headers', () => {
  fc.assert(
    fc.property(FRAMES, fc.array(fc.nat(40), { minLength: 1 }), (frames, lengths) => {
      const bytes = Buffer.concat(
        frames.map(({ type, flags, streamId, payload }) => frame(type, flags, streamId, Buffer.from(payload))),
      );
      const expected = frames.flatMap(({ type, flags, streamId, payload }) => {
        const text = Buffer.from(payload).toString('hex');
        const whole = type === FrameType.DATA ? `content ${text}` : `frame ${type} ${flags} ${streamId} ${text}`;
        return [`start ${type} ${flags} ${streamId} ${payload.length}`, whole];
      });
      const whole = new Listener();
      new FrameReader(whole).read(bytes, 0, bytes.length);
      assert.deepEqual(whole.told, expected);
      const cut = new Listener();
      const reader = new FrameReader(cut);
      for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
        const end = Math.min(bytes.length, at + 1 + lengths[turn % lengths.length]!);
        // Each read lies in memory of its own, which the next one fills with something else.
        const read = Buffer.from(bytes.subarray(at, end));
        reader.read(read, 0, read.length);
        read.fill(0xee);
        at = end;
      }
      assert.deepEqual(cut.told, expected);
    }),
  );
});
