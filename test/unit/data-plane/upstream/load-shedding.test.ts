// Which requests a cluster turns away: the shares, whose word counts, and that chance alone decides within them.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Fraction, RuntimeValues } from '../../../../src/base/runtime.ts';
import { LoadShedding, type SheddingReason } from '../../../../src/data-plane/upstream/load-shedding.ts';

const U32 = fc.integer({ min: 0, max: 0xffff_ffff });
const LIMIT = 'load_balancing_policy.drop_overload_limit';
const MAINTENANCE = 'upstream.maintenance_mode.web';

interface Asked {
  readonly runtime?: Readonly<Record<string, string>>;
  readonly drop?: Fraction | null;
}

/** @param draws what chance gives, one after the other. */
function reason({ runtime = {}, drop = null }: Asked, ...draws: readonly number[]): SheddingReason | null {
  const waiting = [...draws];
  const random = { u32: () => waiting.shift() ?? assert.fail('nothing more is to be drawn') };
  const values = new RuntimeValues(new Map(Object.entries(runtime)));
  return new LoadShedding(values, random, 'web', drop).reason();
}

function percent(numerator: number): Fraction {
  return { numerator, denominator: 100 };
}

describe('load shedding', () => {
  it('turns nobody away, and draws nothing, unless something says so', () => {
    assert.equal(reason({}), null);
    assert.equal(reason({ drop: percent(0) }), null);
    assert.equal(reason({ runtime: { [MAINTENANCE]: '0', 'upstream.maintenance_mode.other': '100' } }), null);
  });

  it('drops the share that the load assignment says', () => {
    fc.assert(
      fc.property(U32, fc.integer({ min: 1, max: 1_000_000 }), (draw, numerator) => {
        const drop = { numerator, denominator: 1_000_000 };
        const expected = draw % 1_000_000 < numerator ? 'drop-overload' : null;
        assert.equal(reason({ drop }, 0, draw), expected);
      }),
    );
  });

  it('drops no more than the runtime lets it', () => {
    const runtime = { [LIMIT]: '10' };
    assert.equal(reason({ runtime, drop: percent(40) }, 0, 10), null);
    assert.equal(reason({ runtime, drop: percent(40) }, 0, 9), 'drop-overload');
    assert.equal(reason({ runtime, drop: percent(9) }, 0, 9), null);
    assert.equal(reason({ runtime, drop: percent(10) }, 0, 9), 'drop-overload');
    assert.equal(reason({ runtime: { [LIMIT]: '0' }, drop: percent(100) }), null);
  });

  it('asks for maintenance first', () => {
    const runtime = { [MAINTENANCE]: '30' };
    assert.equal(reason({ runtime }, 29), 'maintenance-mode');
    assert.equal(reason({ runtime }, 30, 0), null);
    assert.equal(reason({ runtime, drop: percent(100) }, 29), 'maintenance-mode');
    assert.equal(reason({ runtime, drop: percent(100) }, 30, 99), 'drop-overload');
  });

  it('drops another share when another assignment has come', () => {
    const shedding = new LoadShedding(new RuntimeValues(new Map()), { u32: () => 0 }, 'web', null);
    shedding.drop(percent(1));
    assert.equal(shedding.reason(), 'drop-overload');
    shedding.drop(null);
    assert.equal(shedding.reason(), null);
  });

  it('minds what the runtime says later', () => {
    const values = new RuntimeValues(new Map());
    const shedding = new LoadShedding(values, { u32: () => 0 }, 'web', null);
    assert.equal(shedding.reason(), null);
    values.replace(new Map([[MAINTENANCE, '100']]));
    assert.equal(shedding.reason(), 'maintenance-mode');
  });
});
