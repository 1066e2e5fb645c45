// The timer wheel, read slabs, held bytes and peer addresses.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HeldBytes } from '../../../src/data-plane/network/held-bytes.ts';
import { isInternalAddress, plainAddress } from '../../../src/data-plane/network/peer-address.ts';
import { chooseReadMode } from '../../../src/data-plane/network/read-mode.ts';
import { SLAB_SIZES, SlabPool, UNKNOWN_LENGTH } from '../../../src/data-plane/network/slab-pool.ts';
import { TICK_MS, TimerEntry, TimerWheel } from '../../../src/data-plane/network/timer-wheel.ts';
import { ManualClock } from '../../support/manual-clock.ts';

class Probe {
  readonly fired: number[] = [];
  readonly entry = new TimerEntry(this);
  onTimeout(nowMs: number): void {
    this.fired.push(nowMs);
  }
}

function wheelWithClock(): { clock: ManualClock; wheel: TimerWheel } {
  const clock = new ManualClock();
  const wheel = new TimerWheel(clock, (error) => {
    throw error;
  });
  return { clock, wheel };
}

describe('the timer wheel', () => {
  test('fires once, not before its deadline and at most one tick after it', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    wheel.arm(probe.entry, clock.monotonicMs() + 100);
    clock.turn(99);
    assert.deepEqual(probe.fired, []);
    clock.turn(1 + TICK_MS);
    assert.equal(probe.fired.length, 1);
    clock.turn(10_000);
    assert.equal(probe.fired.length, 1);
  });

  test('a deadline that moves back and back again fires at the last one', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    for (let i = 0; i < 50; i++) {
      wheel.arm(probe.entry, clock.monotonicMs() + 100);
      clock.turn(20);
    }
    assert.deepEqual(probe.fired, []);
    clock.turn(100);
    assert.equal(probe.fired.length, 1);
  });

  test('a deadline that moves forward fires at the new one', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    wheel.arm(probe.entry, clock.monotonicMs() + 60_000);
    wheel.arm(probe.entry, clock.monotonicMs() + 30);
    clock.turn(30 + TICK_MS);
    assert.equal(probe.fired.length, 1);
  });

  test('one deadline that is moved far back does not make another late', () => {
    const { clock, wheel } = wheelWithClock();
    const patient = new Probe();
    const punctual = new Probe();
    wheel.arm(patient.entry, clock.monotonicMs() + 50);
    wheel.arm(punctual.entry, clock.monotonicMs() + 100);
    wheel.arm(patient.entry, clock.monotonicMs() + 3_600_000);
    clock.turn(100 + TICK_MS);
    assert.equal(punctual.fired.length, 1);
  });

  test('a deadline beyond one turn of the wheel is kept', () => {
    const { clock, wheel } = wheelWithClock();
    const probe = new Probe();
    wheel.arm(probe.entry, clock.monotonicMs() + 3_600_000);
    clock.turn(3_599_999);
    assert.deepEqual(probe.fired, []);
    clock.turn(1 + TICK_MS);
    assert.equal(probe.fired.length, 1);
  });

  test('an entry that was disarmed or removed never fires and leaves no timer behind', () => {
    const { clock, wheel } = wheelWithClock();
    const disarmed = new Probe();
    const removed = new Probe();
    wheel.arm(disarmed.entry, clock.monotonicMs() + 50);
    wheel.arm(removed.entry, clock.monotonicMs() + 50);
    wheel.disarm(disarmed.entry);
    wheel.remove(removed.entry);
    clock.turn(60_000);
    assert.deepEqual([disarmed.fired, removed.fired], [[], []]);
    assert.equal(wheel.size, 0);
    assert.equal(clock.timerCount, 0);
  });

  test('an owner may arm itself and remove others while it is told', () => {
    const { clock, wheel } = wheelWithClock();
    const victim = new Probe();
    let count = 0;
    const again = new TimerEntry({
      onTimeout(nowMs) {
        count++;
        wheel.remove(victim.entry);
        if (count < 3) wheel.arm(again, nowMs + 10);
      },
    });
    wheel.arm(victim.entry, clock.monotonicMs() + 10);
    wheel.arm(again, clock.monotonicMs() + 10);
    clock.turn(1000);
    assert.equal(count, 3);
  });

  test('an owner that throws takes no turn from the others', () => {
    const clock = new ManualClock();
    const faults: unknown[] = [];
    const wheel = new TimerWheel(clock, (error) => faults.push(error));
    const probe = new Probe();
    const broken = new TimerEntry({
      onTimeout() {
        throw new Error('broken');
      },
    });
    for (const entry of [probe.entry, broken]) wheel.arm(entry, clock.monotonicMs() + 10);
    clock.turn(100);
    assert.equal(faults.length, 1);
    assert.equal(probe.fired.length, 1);
  });

  test('waits for a deadline of any distance, by short steps of the clock', () => {
    const { clock, wheel } = wheelWithClock();
    const month = new Probe();
    const longest = new Probe();
    const monthMs = 30 * 24 * 60 * 60 * 1000;
    wheel.arm(month.entry, clock.monotonicMs() + monthMs);
    wheel.arm(longest.entry, clock.monotonicMs() + 315_576_000_000_000);
    // Not turned step by step: between two looks of the wheel a thread may stand still as long as it likes.
    clock.turn(60_000);
    wheel.advance(clock.monotonicMs() + monthMs - 60_000 - TICK_MS);
    assert.deepEqual([month.fired.length, longest.fired.length], [0, 0]);
    wheel.advance(clock.monotonicMs() + monthMs);
    assert.deepEqual([month.fired.length, longest.fired.length], [1, 0]);
  });

  test('any mix of deadlines and steps fires each entry exactly once and in time', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 40 }),
        fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 20 }),
        (delays, steps) => {
          const { clock, wheel } = wheelWithClock();
          const start = clock.monotonicMs();
          const probes = delays.map((delay) => {
            const probe = new Probe();
            wheel.arm(probe.entry, start + delay);
            return { probe, delay };
          });
          for (const step of steps) clock.turn(step);
          clock.turn(50_000);
          for (const { probe, delay } of probes) {
            assert.equal(probe.fired.length, 1);
            const late = probe.fired[0]! - start - delay;
            assert.ok(late >= 0 && late <= TICK_MS + 1, `late by ${late}`);
          }
        },
      ),
    );
  });
});

describe('read slabs', () => {
  const MIB = 1024 * 1024;

  test('grow with what is left of the body, within the buffer limit', () => {
    const pool = new SlabPool(64 * MIB);
    assert.equal(pool.take(100_000, MIB).length, SLAB_SIZES[0]);
    assert.equal(pool.take(500_000, MIB).length, SLAB_SIZES[1]);
    assert.equal(pool.take(UNKNOWN_LENGTH, MIB).length, SLAB_SIZES[1]);
    assert.equal(pool.take(5 * MIB, MIB).length, SLAB_SIZES[2]);
    assert.equal(pool.take(5 * MIB, 300_000).length, SLAB_SIZES[1]);
    assert.equal(pool.take(5 * MIB, 10).length, SLAB_SIZES[0]);
  });

  test('come back for the next body, unless the kernel may still hold them', () => {
    const pool = new SlabPool(64 * MIB);
    const slab = pool.take(5 * MIB, MIB);
    pool.give(slab);
    assert.equal(pool.freeBytes, MIB);
    assert.equal(pool.take(5 * MIB, MIB), slab);
    pool.forget(slab);
    assert.notEqual(pool.take(5 * MIB, MIB), slab);
    assert.equal(pool.outstandingBytes, MIB);
  });

  test('stay small beyond the cap, and nothing is kept above it', () => {
    const pool = new SlabPool(2 * MIB);
    const slabs = [pool.take(5 * MIB, MIB), pool.take(5 * MIB, MIB), pool.take(5 * MIB, MIB)];
    assert.deepEqual(
      slabs.map((slab) => slab.length),
      [MIB, MIB, SLAB_SIZES[0]],
    );
    for (const slab of slabs) pool.give(slab);
    assert.ok(pool.freeBytes <= 2 * MIB);
    assert.equal(pool.outstandingBytes, 0);
  });
});

test('held bytes come back whole and in order, whatever the pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 20 }), (pieces) => {
      const held = new HeldBytes();
      for (const piece of pieces) held.append(Buffer.from(piece), 0, piece.length);
      assert.deepEqual(held.take(), Buffer.concat(pieces));
      assert.equal(held.length, 0);
    }),
  );
});

test('private networks are internal, mapped IPv4 addresses are shown as IPv4', () => {
  const internal = ['10.1.2.3', '172.31.0.1', '192.168.1.1', '127.0.0.1', '::1', 'fd12::1'];
  const external = ['8.8.8.8', '172.32.0.1', '2001:db8::1', '', 'nonsense'];
  assert.deepEqual(
    internal.filter((address) => !isInternalAddress(address)),
    [],
  );
  assert.deepEqual(external.filter(isInternalAddress), []);
  assert.equal(plainAddress('::ffff:1.2.3.4'), '1.2.3.4');
  assert.equal(plainAddress('::1'), '::1');
});

test('this Node release can read accepted sockets the lean way', async () => {
  assert.equal(await chooseReadMode(), 'lean');
});
