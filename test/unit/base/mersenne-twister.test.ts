import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MersenneTwister } from '../../../src/base/mersenne-twister.ts';

function drawn(seed: number, count: number): number[] {
  const twister = new MersenneTwister();
  twister.seed(seed);
  return Array.from({ length: count }, () => twister.u32());
}

describe('the Mersenne Twister', () => {
  test('draws what the C++ standard says of its default seed', () => {
    assert.equal(drawn(5489, 10_000).at(-1), 4_123_659_995);
    assert.deepEqual(drawn(5489, 3), [3_499_211_612, 581_869_302, 3_890_346_734]);
    assert.deepEqual(drawn(1, 3), [1_791_095_845, 4_282_876_139, 3_093_770_124]);
  });

  test('begins anew with a seed, of which 32 bits count', () => {
    const twister = new MersenneTwister();
    twister.seed(7);
    const first = twister.u32();
    twister.u32();
    twister.seed(7);
    assert.equal(twister.u32(), first);
    twister.seed(-1);
    const last = twister.u32();
    twister.seed(0xffff_ffff);
    assert.equal(twister.u32(), last);
  });

  test('draws each number below a bound about as often, and none beyond', () => {
    const twister = new MersenneTwister();
    twister.seed(42);
    for (const count of [1, 2, 3, 7, 100]) {
      const counts = new Array<number>(count).fill(0);
      for (let draw = 0; draw < 200 * count; draw += 1) counts[twister.below(count)]! += 1;
      assert.equal(counts.length, count);
      assert.ok(
        counts.every((times) => times > 100 && times < 300),
        `${counts}`,
      );
    }
  });
});
