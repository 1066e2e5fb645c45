// When what the allocator keeps goes back to the system: a process whose memory and connections a test sets, by a clock that it turns.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SpareMemory } from '../../../src/process/spare-memory.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const MB = 1024 * 1024;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

class Process {
  readonly clock = new ManualClock();
  bytes = 100 * MB;
  connections = 0;
  /** What a trim would give back. */
  spareBytes = 0;
  isAble = true;
  /** When each has been, in seconds. */
  readonly trims: number[] = [];
  readonly givenBack: number[] = [];
  readonly #startMs = this.clock.monotonicMs();
  readonly memory = new SpareMemory({
    clock: this.clock,
    residentBytes: () => this.bytes,
    connections: () => this.connections,
    trim: () => {
      if (!this.isAble) return false;
      this.trims.push((this.clock.monotonicMs() - this.#startMs) / SECOND);
      this.bytes -= this.spareBytes;
      this.spareBytes = 0;
      return true;
    },
    onGivenBack: (bytes) => this.givenBack.push(bytes / MB),
  });

  take(megabytes: number): void {
    this.bytes += megabytes * MB;
    this.spareBytes += megabytes * MB;
  }
}

test('what was taken goes back once no more is taken', () => {
  const process = new Process();
  process.clock.turn(10 * SECOND);
  for (let second = 0; second < 5; second++) {
    process.take(8);
    process.clock.turn(SECOND);
  }
  assert.deepEqual(process.trims, []);
  process.clock.turn(SECOND);
  assert.deepEqual(process.trims, [16]);
  assert.deepEqual(process.givenBack, [40]);
  process.clock.turn(10 * MINUTE);
  assert.equal(process.trims.length, 1);
});

test('less than 16 MiB stays, however often it is taken', () => {
  const process = new Process();
  for (let time = 0; time < 20; time++) {
    process.take(15);
    process.clock.turn(MINUTE);
    process.bytes -= 15 * MB;
    process.clock.turn(MINUTE);
  }
  assert.deepEqual(process.trims, []);
  process.take(16);
  process.clock.turn(2 * SECOND);
  assert.equal(process.trims.length, 1);
});

test('memory that was higher when the start was over counts from where it has fallen to', () => {
  const process = new Process();
  process.bytes -= 20 * MB;
  process.clock.turn(2 * SECOND);
  process.take(16);
  process.clock.turn(2 * SECOND);
  assert.equal(process.trims.length, 1);
});

test('what a thousand connections have left goes back, though the memory has not grown', () => {
  const process = new Process();
  for (const [connections, trims] of [
    [3_000, 0],
    [2_001, 0],
    [2_000, 1],
    [2_000, 1],
    [1_001, 1],
    [1_900, 1],
    [1_000, 2],
  ] as const) {
    process.connections = connections;
    process.clock.turn(5 * SECOND);
    assert.equal(process.trims.length, trims, `${connections} connections`);
  }
});

test('a process that takes again what it has given back is left alone for longer and longer, up to ten minutes', () => {
  const process = new Process();
  const takeAgain = (): void => {
    for (let second = 0; second < 3 * 3600; second++) {
      if (process.spareBytes === 0) process.take(32);
      process.clock.turn(SECOND);
    }
  };
  takeAgain();
  const { trims } = process;
  const waits = trims.slice(1).map((at, index) => at - trims[index]!);
  assert.deepEqual(waits.slice(0, 4), [2, 4, 8, 16]);
  assert.deepEqual([...new Set(waits.slice(9))], [600]);
});

test('a long quiet forgets that', () => {
  const process = new Process();
  for (let time = 0; time < 4; time++) {
    process.take(32);
    process.clock.turn(2 * MINUTE);
  }
  assert.equal(process.trims.length, 4);
  process.take(32);
  process.clock.turn(2 * SECOND);
  process.take(32);
  process.clock.turn(3 * SECOND);
  assert.equal(process.trims.length, 6, `${process.trims}`);
});

test('where there is nothing to ask, or at the end, nobody looks any more', () => {
  const process = new Process();
  process.isAble = false;
  process.take(32);
  process.clock.turn(3 * SECOND);
  assert.equal(process.clock.timerCount, 0);
  const other = new Process();
  other.memory.stop();
  assert.equal(other.clock.timerCount, 0);
  const third = new Process();
  third.clock.turn(5 * SECOND);
  third.memory.stop();
  third.take(32);
  third.clock.turn(MINUTE);
  assert.deepEqual(third.trims, []);
});

test('whatever memory and connections do, trims keep their distance, and what stays does not stay for ever', () => {
  const step = fc.record({
    megabytes: fc.integer({ min: 0, max: 40 }),
    connections: fc.integer({ min: 0, max: 3_000 }),
    seconds: fc.integer({ min: 1, max: 30 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const process = new Process();
      for (const { megabytes, connections, seconds } of steps) {
        process.take(megabytes);
        process.connections = connections;
        process.clock.turn(seconds * SECOND);
      }
      const waits = process.trims.slice(1).map((at, index) => at - process.trims[index]!);
      assert.ok(
        waits.every((wait) => wait >= 2),
        `${waits}`,
      );
      // Beyond the longest wait what is spare is less than what is worth it.
      process.clock.turn(11 * MINUTE);
      assert.ok(process.spareBytes < 16 * MB, `${process.spareBytes / MB} MB`);
    }),
  );
});
