// A body on its way through zlib: steps, room, ends and failures, with an owner that notes what it is told.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Transform } from 'node:stream';
import { describe, it, type TestContext } from 'node:test';
import { createGunzip, createGzip, gunzipSync, gzipSync } from 'node:zlib';
import { createCompressor, createDecompressor } from '../../../../src/extensions/compression/engines.ts';
import { Recoder, type RecoderOptions, type RecodingFailure } from '../../../../src/extensions/compression/recoder.ts';
import { eventually } from '../../../support/eventually.ts';

const STEP = 64 * 1024;

class Owner {
  taken = 0;
  readonly pieces: Buffer[] = [];
  readonly failures: (readonly [RecodingFailure, string])[] = [];
  exchanges = 0;
  isOver = false;
  hasRoom = true;

  exchange(taken: number, bytes: Buffer, isLast: boolean): boolean {
    assert.ok(!this.isOver, 'nothing follows the last');
    this.exchanges += 1;
    this.taken += taken;
    if (bytes.length > 0) this.pieces.push(bytes);
    this.isOver = isLast;
    return this.hasRoom;
  }

  onRecodingFailure(failure: RecodingFailure, code: string): void {
    this.failures.push([failure, code]);
  }

  get bytes(): Buffer {
    return Buffer.concat(this.pieces);
  }
}

function counter() {
  return {
    total: 0,
    add(n: number) {
      this.total += n;
    },
  };
}

function recoderOf(t: TestContext, fields: Partial<RecoderOptions>) {
  const owner = new Owner();
  const engines: Transform[] = [];
  const [inBytes, outBytes] = [counter(), counter()];
  const create = fields.create ?? (() => createGzip());
  const recoder = new Recoder(
    {
      headBytes: 0,
      limit: null,
      wrapsNothing: true,
      inBytes,
      outBytes,
      ...fields,
      create(first) {
        const engine = create(first);
        engines.push(engine);
        return engine;
      },
    },
    owner,
  );
  t.after(() => recoder.destroy());
  return { owner, recoder, engines, inBytes, outBytes };
}

const LIMIT = { ratio: 100, freeBytes: 0 };
const CHUNK = 32 * 1024;
const NO_BYTES = Buffer.alloc(0);
const GZIP = { kind: 'gzip', level: 1, strategy: 0, memoryLevel: 8, windowBits: 15, chunkBytes: CHUNK } as const;
const GUNZIP = { kind: 'gzip', windowBits: 15, chunkBytes: CHUNK, limit: LIMIT } as const;
const LONG = randomBytes(5 * STEP);

/** Notes the memories of what is read. */
function noting(engine: Transform, memories: Set<ArrayBufferLike>): Transform {
  const read = engine.read.bind(engine);
  engine.read = (size?: number): unknown => {
    const bytes = read(size) as Buffer | null;
    if (bytes !== null) memories.add(bytes.buffer);
    return bytes;
  };
  return engine;
}

describe('a recoder', () => {
  it('gives a whole body at once, and counts it', async (t) => {
    const { owner, recoder, inBytes, outBytes } = recoderOf(t, {});
    assert.equal(recoder.see(Buffer.from('hello'), true), 'stop-and-pause');
    await eventually(() => owner.isOver, 'an end');
    assert.deepEqual([owner.exchanges, owner.taken, gunzipSync(owner.bytes).toString()], [1, 5, 'hello']);
    assert.deepEqual([inBytes.total, outBytes.total], [5, owner.bytes.length]);
  });

  it('works a long body off in steps, and takes each with what has come of it', async (t) => {
    const { owner, recoder } = recoderOf(t, {});
    const body = randomBytes(3 * STEP + 5);
    recoder.see(body.subarray(0, 10), false);
    recoder.see(body.subarray(10), true);
    await eventually(() => owner.isOver, 'an end');
    assert.equal(owner.taken, body.length);
    // The first ten bytes, and the rest in three steps.
    assert.equal(owner.exchanges, 4);
    assert.ok(gunzipSync(owner.bytes).equals(body));
  });

  for (const [what, create, input, output] of [
    ['compressed', () => createCompressor(GZIP), LONG, null],
    ['decompressed', () => createDecompressor(GUNZIP, NO_BYTES), gzipSync(LONG), LONG],
  ] as const) {
    it(`leaves no memory of the engine to the collector, and gives away what is alone in its own, ${what}`, async (t) => {
      const memories = new Set<ArrayBufferLike>();
      const { owner, recoder } = recoderOf(t, {
        create: () => noting(create(), memories),
        limit: output === null ? null : LIMIT,
      });
      // Odd steps, of several pieces each.
      for (let at = 0; at < input.length; at += 10_007) recoder.see(input.subarray(at, at + 10_007), false);
      recoder.seeTrailers();
      await eventually(() => owner.isOver, 'an end');
      assert.ok((output === null ? gunzipSync(owner.bytes) : owner.bytes).equals(LONG));
      assert.ok(memories.size > LONG.length / CHUNK / 2, `${memories.size} buffers`);
      assert.deepEqual(
        [...memories].filter(({ byteLength }) => byteLength > 0),
        [],
      );
      for (const piece of owner.pieces) assert.equal(piece.buffer.byteLength, piece.length);
    });
  }

  it('reads on where somebody is slow, whatever the size of the buffers', async (t) => {
    for (const chunkBytes of [5000, 20_000, 32 * 1024, 50_000, 65_535]) {
      for (let round = 0; round < 10; round += 1) {
        // Each step makes more of it than the stream holds for nobody.
        const body = Buffer.from(randomBytes(200_000 + round * 9001).toString('hex'));
        const create = (): Transform => createDecompressor({ ...GUNZIP, chunkBytes }, NO_BYTES);
        const { owner, recoder } = recoderOf(t, { create, limit: LIMIT });
        let asked = 0;
        Object.defineProperty(owner, 'hasRoom', { get: () => (asked++ + round) % 3 === 0 });
        recoder.see(gzipSync(body), true);
        let turns = 0;
        await eventually(() => {
          // Long enough for the stream to fill up.
          if (turns++ % 50 === 0) recoder.onRoom();
          return owner.isOver;
        }, 'an end');
        assert.ok(owner.bytes.equals(body), `${chunkBytes} ${round}`);
      }
    }
  });

  it('puts small pieces that wait into one step', async (t) => {
    const { owner, recoder } = recoderOf(t, {});
    for (let at = 0; at < 50; at += 1) recoder.see(Buffer.from('x'.repeat(100)), false);
    await eventually(() => owner.taken === 5000, 'all of it taken');
    assert.equal(owner.exchanges, 2);
  });

  it('ends with the trailers', async (t) => {
    const { owner, recoder } = recoderOf(t, {});
    recoder.see(Buffer.from('hello'), false);
    recoder.seeTrailers();
    await eventually(() => owner.isOver, 'an end');
    assert.equal(gunzipSync(owner.bytes).toString(), 'hello');
  });

  it('does nothing more while there is no room, and goes on when there is', async (t) => {
    const { owner, recoder, engines } = recoderOf(t, {});
    owner.hasRoom = false;
    recoder.see(randomBytes(3 * STEP), true);
    await eventually(() => owner.exchanges === 1, 'a step');
    assert.deepEqual([owner.taken, engines[0]!.writableLength], [STEP, 0]);
    owner.hasRoom = true;
    recoder.onRoom();
    await eventually(() => owner.isOver, 'an end');
    assert.equal(owner.taken, 3 * STEP);
  });

  it('has zlib wait with what would outgrow the room that there is', async (t) => {
    const create = (): Transform => createGunzip({ chunkSize: STEP });
    const { owner, recoder, engines, outBytes } = recoderOf(t, { create, limit: { ratio: 2000, freeBytes: 0 } });
    const bytes = gzipSync(Buffer.alloc(4 * 1024 * 1024));
    owner.hasRoom = false;
    recoder.see(bytes, true);
    await eventually(() => (engines[0]?.readableLength ?? 0) > 0, 'a piece that nobody reads');
    assert.equal(owner.exchanges, 1);
    assert.ok(outBytes.total < 1024 * 1024, `${outBytes.total} bytes made for nobody`);
    while (!owner.isOver) {
      recoder.onRoom();
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual([owner.taken, outBytes.total], [bytes.length, 4 * 1024 * 1024]);
  });

  it('calls what grows too much a bomb, and goes no further', async (t) => {
    const { owner, recoder, engines } = recoderOf(t, { create: () => createGunzip(), limit: LIMIT });
    const bytes = gzipSync(Buffer.alloc(4 * 1024 * 1024));
    recoder.see(bytes, true);
    await eventually(() => owner.failures.length > 0, 'a failure');
    assert.deepEqual(owner.failures, [['bomb', '']]);
    assert.ok(owner.bytes.length <= 100 * bytes.length);
    assert.ok(engines[0]!.destroyed);
  });

  it('tells what zlib finds wrong, once', async (t) => {
    const { owner, recoder, engines } = recoderOf(t, { create: () => createGunzip(), limit: LIMIT });
    recoder.see(Buffer.from('this is no gzip'), false);
    await eventually(() => owner.failures.length > 0, 'a failure');
    recoder.see(Buffer.from('nor is this'), true);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(owner.failures, [['broken', 'Z_DATA_ERROR']]);
    assert.deepEqual([owner.exchanges, engines.length], [0, 1]);
  });

  it('leaves an empty body as it is, where that is no body of its kind', async (t) => {
    const { owner, recoder, engines } = recoderOf(t, {
      create: () => createGunzip(),
      limit: LIMIT,
      wrapsNothing: false,
    });
    assert.equal(recoder.see(Buffer.alloc(0), true), 'continue');
    assert.deepEqual([engines.length, owner.exchanges], [0, 0]);
    const other = recoderOf(t, {});
    other.recoder.see(Buffer.alloc(0), true);
    await eventually(() => other.owner.isOver, 'an end');
    assert.equal(gunzipSync(other.owner.bytes).length, 0);
  });

  it('waits for as many bytes as it takes to know what to make', async (t) => {
    let first = '';
    const create = (bytes: Buffer): Transform => {
      first = bytes.toString();
      return createGzip();
    };
    const { owner, recoder, engines } = recoderOf(t, { create, headBytes: 6 });
    recoder.see(Buffer.from('abc'), false);
    assert.equal(engines.length, 0);
    recoder.see(Buffer.from('defg'), false);
    assert.equal(first, 'abcdefg');
    recoder.see(Buffer.alloc(0), true);
    await eventually(() => owner.isOver, 'an end');
    assert.equal(gunzipSync(owner.bytes).toString(), 'abcdefg');
  });

  it('lets go of zlib in the middle of a step, and tells nobody anything any more', async (t) => {
    const { owner, recoder, engines } = recoderOf(t, {});
    recoder.see(randomBytes(3 * STEP), true);
    recoder.destroy();
    assert.ok(engines[0]!.destroyed);
    await new Promise((resolve) => engines[0]!.once('close', resolve));
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([owner.exchanges, owner.failures.length], [0, 0]);
  });
});
