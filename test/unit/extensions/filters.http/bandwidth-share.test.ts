// How the bytes of a bucket are shared out among bodies that wait, in one worker and in several.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { bucketState } from '../../../../src/base/token-bucket.ts';
import {
  ByteShare,
  shareOut,
  type WaitingBody,
} from '../../../../src/extensions/filters.http/bandwidth_limit/byte-share.ts';
import type { ByteBucketSettings } from '../../../../src/extensions/filters.http/bandwidth_limit/settings.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const FILL_MS = 50;

/** @param bytesPerFill in the bucket from the start, and twenty times that at most. */
function bucketOf(bytesPerFill: number, clock: ManualClock): ByteBucketSettings {
  const state = bucketState(bytesPerFill, clock.monotonicMs());
  const tokens = { maxTokens: bytesPerFill * 20, tokensPerFill: bytesPerFill, fillIntervalMs: FILL_MS, state };
  return { tokens, waiting: new SharedArrayBuffer(4) };
}

function workerOf(bucket: ByteBucketSettings, clock: ManualClock): ByteShare {
  return new ByteShare(bucket, { clock, sharedNowMs: () => clock.monotonicMs() });
}

const waitingIn = ({ waiting }: ByteBucketSettings): number => new Int32Array(waiting)[0]!;

class Body implements WaitingBody {
  left: number;
  readonly gone: number[] = [];

  readonly sliceBytes: number;

  constructor(bytes: number, sliceBytes = Number.POSITIVE_INFINITY) {
    this.left = bytes;
    this.sliceBytes = sliceBytes;
  }

  wanted(): number {
    return Math.min(this.left, this.sliceBytes);
  }

  letPass(bytes: number): boolean {
    assert.ok(bytes <= this.left);
    this.left -= bytes;
    this.gone.push(bytes);
    return this.left > 0;
  }
}

describe('bytes that are shared out', () => {
  it('are all given, none twice, and to nobody more than another could have had', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1000), { minLength: 1, maxLength: 20 }), fc.nat(100), (wanted, percent) => {
        const total = Math.floor((wanted.reduce((a, b) => a + b) * percent) / 100);
        const given = shareOut(wanted, total);
        assert.equal(
          given.reduce((a, b) => a + b, 0),
          total,
        );
        for (const [index, bytes] of given.entries()) {
          assert.ok(bytes <= wanted[index]!);
          if (bytes < wanted[index]!) assert.ok(bytes >= Math.max(...given) - 1, `${given} of ${wanted}`);
        }
      }),
    );
    assert.deepEqual(shareOut([5, 5, 5], 2), [1, 1, 0]);
  });

  it('come with each fill, in turn where there are fewer than bodies', () => {
    const clock = new ManualClock();
    const bucket = bucketOf(2, clock);
    const share = workerOf(bucket, clock);
    const bodies = [new Body(2), new Body(2), new Body(2)];
    for (const body of bodies) share.join(body);
    assert.equal(waitingIn(bucket), 3);
    clock.turn(0);
    assert.deepEqual(
      bodies.map(({ left }) => left),
      [1, 1, 2],
    );
    clock.turn(FILL_MS);
    assert.deepEqual(
      bodies.map(({ left }) => left),
      [0, 1, 1],
      'who went without is first',
    );
    clock.turn(FILL_MS);
    assert.deepEqual(
      bodies.map(({ left }) => left),
      [0, 0, 0],
    );
    assert.deepEqual([waitingIn(bucket), clock.timerCount], [0, 0]);
  });

  it('are not taken at once past those that wait, in whatever worker', () => {
    const clock = new ManualClock();
    const bucket = bucketOf(100, clock);
    const [here, there] = [workerOf(bucket, clock), workerOf(bucket, clock)];
    assert.ok(here.takeAtOnce(10));
    const body = new Body(1000);
    here.join(body);
    assert.ok(!here.takeAtOnce(10));
    assert.ok(!there.takeAtOnce(10));
    here.leave(body);
    here.leave(body);
    assert.ok(there.takeAtOnce(10));
    assert.equal(clock.timerCount, 0);
  });

  it('are saved up for many, but not for one', () => {
    const clock = new ManualClock();
    const bucket = bucketOf(100, clock);
    const share = workerOf(bucket, clock);
    clock.turn(10 * FILL_MS);
    const bodies = Array.from({ length: 5 }, () => new Body(250, 100));
    for (const body of bodies) share.join(body);
    clock.turn(0);
    assert.deepEqual(
      bodies.map(({ left }) => left),
      Array(5).fill(150),
    );
  });

  it('are looked for once with each fill, and still by those whose neighbour has left', () => {
    const clock = new ManualClock();
    const bucket = bucketOf(10, clock);
    const share = workerOf(bucket, clock);
    let questions = 0;
    const body: WaitingBody = {
      wanted: () => {
        questions += 1;
        return 10;
      },
      letPass: () => true,
    };
    const other = new Body(100);
    share.join(body);
    share.join(other);
    clock.turn(0);
    share.leave(other);
    clock.turn(10 * FILL_MS);
    assert.equal(questions, 11);
  });

  it('come no faster than the bucket is filled, to all workers by their numbers of bodies, until all are done', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 5000 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(
        fc.array(sizes, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 100, max: 700 }),
        (workers, perFill) => {
          const clock = new ManualClock();
          const bucket = bucketOf(perFill, clock);
          const all: Body[] = [];
          for (const bodies of workers) {
            const share = workerOf(bucket, clock);
            for (const bytes of bodies) {
              const body = new Body(bytes, perFill);
              all.push(body);
              share.join(body);
            }
          }
          const sum = all.reduce((bytes, body) => bytes + body.left, 0);
          // What the bucket has saved up is given out later.
          const mostFills = Math.ceil(sum / perFill) + 40 + all.length;
          for (let fills = 1; fills <= mostFills; fills += 1) {
            clock.turn(fills === 1 ? 0 : FILL_MS);
            const gone = sum - all.reduce((bytes, body) => bytes + body.left, 0);
            assert.ok(gone <= fills * perFill, `${gone} bytes after ${fills} fills of ${perFill}`);
          }
          assert.deepEqual(
            all.map(({ left }) => left),
            all.map(() => 0),
          );
          assert.equal(waitingIn(bucket), 0);
          assert.equal(clock.timerCount, 0);
        },
      ),
    );
  });

  it('are halved between a worker with one body and another with one, whoever wakes first', () => {
    const clock = new ManualClock();
    const bucket = bucketOf(100, clock);
    const bodies = [new Body(10_000), new Body(10_000)];
    for (const body of bodies) workerOf(bucket, clock).join(body);
    clock.turn(0);
    for (let fill = 0; fill < 40; fill += 1) clock.turn(FILL_MS);
    const [a, b] = bodies.map(({ gone }) => gone.reduce((x, y) => x + y, 0));
    assert.ok(Math.abs(a! - b!) <= 200, `${a} and ${b}`);
    assert.ok(a! + b! >= 41 * 100 - 200, `${a! + b!} of ${41 * 100}`);
  });
});
