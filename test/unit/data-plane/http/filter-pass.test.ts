// One direction of a stream through filters, without a codec and a connection.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BodyPlan } from '../../../../src/data-plane/http/body-uses.ts';
import type { FilterStatus } from '../../../../src/data-plane/http/filter.ts';
import { FilterPass } from '../../../../src/data-plane/http/filter-pass.ts';
import type { MessagePart } from '../../../../src/data-plane/http/message-part.ts';
import { Framing } from '../../../../src/wasm/http1.ts';
import { type FilterScript, passScript, runPass } from '../../../support/scripted-pass.ts';

const MANY = 1_000_000;
const KIB = 1024;

/** One filter that holds back what it sees. */
class HoldingPass extends FilterPass {
  protected readonly isCopiedOnDelivery: boolean;
  readonly seen: Buffer[] = [];
  readonly delivered: Buffer[] = [];

  constructor(isCopiedOnDelivery = false) {
    super(new BodyPlan(['edits']), MANY);
    this.isCopiedOnDelivery = isCopiedOnDelivery;
  }

  /** Bytes of memory of their own. */
  come(size: number, isEnd: boolean): Buffer {
    const bytes = Buffer.allocUnsafeSlow(size).fill('x');
    if (this.hasBegun) this.push(bytes, 0, size, isEnd, null);
    else this.begin(bytes, 0, size, isEnd, Framing.LENGTH, null, false);
    return bytes;
  }

  protected override visitHead(): FilterStatus {
    return 'stop-and-pause';
  }

  protected override visitData(_: number, { bytes }: MessagePart): FilterStatus {
    this.seen.push(bytes);
    return 'stop-and-pause';
  }

  protected override visitTrailers(): FilterStatus {
    return 'stop-and-pause';
  }

  protected override visitWithRoom(): void {}

  protected override saveHead(): boolean {
    return true;
  }

  protected override restoreHead(): void {}

  protected override mayHaveBody(): boolean {
    return true;
  }

  protected override reframe(): void {}

  protected override deliver(_: boolean, bytes: Buffer, start: number, end: number): boolean {
    const part = bytes.subarray(start, end);
    this.delivered.push(this.isCopiedOnDelivery ? Buffer.copyBytesFrom(part) : part);
    return true;
  }

  protected override keepBytes(bytes: Buffer, start: number, end: number): Buffer {
    return bytes.subarray(start, end);
  }

  protected override resumeReading(): void {}

  protected override onOverflow(): void {}
}

test('memory of a part is free when all of it has been taken', () => {
  const pass = new HoldingPass();
  const first = pass.come(40 * KIB, false);
  const second = pass.come(20 * KIB, true);
  assert.equal(pass.seen.length, 2);
  pass.exchange(0, 40 * KIB - 1, Buffer.from('a'), false);
  assert.equal(first.length, 40 * KIB);
  pass.exchange(0, 2, Buffer.from('b'), false);
  assert.deepEqual([first.length, second.length], [0, 20 * KIB]);
  pass.exchange(0, 20 * KIB - 1, Buffer.from('c'), true);
  assert.equal(second.length, 0);
  assert.equal(Buffer.concat(pass.delivered).toString(), 'abc');
});

test('memory stays while a part of it goes on by itself', () => {
  const pass = new HoldingPass();
  const bytes = pass.come(40 * KIB, true);
  pass.release(0, 100);
  pass.exchange(0, 40 * KIB - 100, Buffer.from('b'), true);
  assert.equal(bytes.length, 40 * KIB);
  assert.equal(Buffer.concat(pass.delivered).toString(), `${'x'.repeat(100)}b`);
});

test('memory in which others lie stays', () => {
  const pass = new HoldingPass();
  const bytes = Buffer.allocUnsafeSlow(40 * KIB);
  pass.begin(bytes, 100, bytes.length, true, Framing.LENGTH, null, false);
  pass.exchange(0, bytes.length - 100, Buffer.from('b'), true);
  assert.equal(bytes.length, 40 * KIB);
});

test('a message whose parts queue from its head on fares like one that filters let through at once', () => {
  // Of chunks the queue counts the framing, too, as long as not all filters have said what they do with the body.
  const scripts = passScript.map((script) => ({ ...script, isChunked: false }));
  fc.assert(
    fc.property(scripts, (script) => assert.deepEqual(runPass(script), runPass(script, true))),
    { numRuns: 5000 },
  );
});

test('what has come of a message can be had while a filter that may change it has not seen it', () => {
  const holding: FilterScript = {
    use: 'reads',
    visits: [
      { deed: 'nothing', status: 'continue' },
      { deed: 'nothing', status: 'stop-and-pause' },
    ],
  };
  const editing: FilterScript = { use: 'edits', visits: [{ deed: 'nothing', status: 'stop-and-pause' }] };
  const data = { type: 'data', size: 5, isEnd: true, hasTrailers: false } as const;
  const script = { filters: [holding, editing], limitBytes: 1000, isTunnel: false, first: data, room: [] };
  const collected = (isChunked: boolean, filters = script.filters): string | undefined =>
    runPass({ ...script, isChunked, filters, events: [{ type: 'collect' }] }).find((note) =>
      note.startsWith('collected'),
    );
  assert.equal(collected(false), 'collected bbbbb true ');
  // Its framing is gone.
  assert.equal(collected(true), 'collected   ');
  assert.equal(collected(true, [holding, { ...editing, use: 'none' }]), 'collected 5;a=b\r\nbbbbb\r\n0\r\n\r\n true ');
});

for (const isCopied of [true, false]) {
  test(`memory of what has been delivered is ${isCopied ? 'free where it has been copied' : 'given away otherwise'}`, () => {
    const pass = new HoldingPass(isCopied);
    const [taken, first] = [pass.come(20 * KIB, false), pass.come(40 * KIB, false)];
    const given = Buffer.allocUnsafeSlow(30 * KIB).fill('y');
    pass.exchange(0, 20 * KIB, given, false);
    const last = pass.come(16 * KIB, true);
    pass.goOn(0);
    assert.equal(taken.length, 0);
    assert.deepEqual(
      [given, first, last].map(({ length }) => length),
      isCopied ? [0, 0, 0] : [30, 40, 16].map((size) => size * KIB),
    );
    const whole = Buffer.concat(pass.delivered).toString();
    assert.equal(whole.replaceAll(/(.)\1*/g, '$1'), 'yx');
  });
}
