import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FrameOutput, FrameSlabs } from '../../../../../../src/data-plane/http/codec/http2/frame-output.ts';

const FRAME = 16384;
const HEADER = 9;

function pieces(output: FrameOutput, isTaken = true): Buffer[] {
  const all: Buffer[] = [];
  while (output.length > 0) {
    all.push(output.next.subarray(0, output.nextLength));
    output.done(isTaken);
  }
  return all;
}

function bodies(bytes: Buffer): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const end = at + HEADER + bytes.readUIntBE(at, 3);
    text += bytes.toString('latin1', at + HEADER, end);
    at = end;
  }
  return text;
}

describe('slabs of frames', () => {
  /** @returns how many of so many that a turn has taken and given back the next turn gets again. */
  function usedAgain(turn: number, bytes: number): number {
    const slabs = new FrameSlabs();
    const take = (): Buffer[] => Array.from({ length: turn }, () => slabs.take(bytes));
    const first = new Set(take());
    assert.equal(first.size, turn);
    for (const slab of first) slabs.give(slab);
    return take().filter((slab) => first.has(slab)).length;
  }

  it('are used again by some hundreds of sessions that write in one turn', () => {
    assert.equal(usedAgain(512, 100), 512);
    assert.equal(usedAgain(64, FRAME), 64);
  });

  it('are let go where there are more, so that a burst does not keep its memory', () => {
    assert.equal(usedAgain(600, 100), 512);
    assert.equal(usedAgain(100, FRAME), 64);
  });
});

describe('frames to send', () => {
  it('leave in one write as long as they fit, in one for each slab beyond that', () => {
    const output = new FrameOutput(new FrameSlabs());
    const body = Buffer.alloc(FRAME, 'x');
    for (let frame = 0; frame < 4; frame += 1) output.data(1, body, 0, FRAME, false);
    assert.equal(output.hasFull, false);
    output.data(1, body, 0, FRAME, true);
    assert.equal(output.hasFull, true);
    assert.equal(output.length, 5 * (FRAME + HEADER));
    assert.deepEqual(
      pieces(output).map(({ length }) => length / (FRAME + HEADER)),
      [4, 1],
    );
  });

  it('keep their order, and lie untouched as long as the kernel holds them', () => {
    const turn = fc.record({ frames: fc.array(fc.nat(FRAME), { maxLength: 24 }), isTaken: fc.boolean() });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 12 }), (turns) => {
        const output = new FrameOutput(new FrameSlabs());
        let letter = 0;
        let expected = '';
        const left: Buffer[] = [];
        let held: Buffer[] = [];
        for (const { frames, isTaken } of turns) {
          for (const length of frames) {
            const body = Buffer.alloc(length, String.fromCharCode(97 + (letter++ % 26)));
            expected += body.toString('latin1');
            output.data(1, body, 0, length, false);
          }
          const said = pieces(output, isTaken);
          // What was taken may be written over from now on; what is held may not, until all of it has been taken.
          if (!isTaken) held.push(...said);
          left.push(...(isTaken ? said.map((piece) => Buffer.from(piece)) : said));
          if (isTaken && held.length > 0) {
            for (const piece of held) left[left.indexOf(piece)] = Buffer.from(piece);
            held = [];
            output.forget();
          }
        }
        assert.equal(bodies(Buffer.concat(left)), expected);
      }),
      { numRuns: 60 },
    );
  });
});
