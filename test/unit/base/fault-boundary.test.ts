import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorMessage } from '../../../src/base/errors.ts';
import { FaultBoundary } from '../../../src/base/fault-boundary.ts';
import { runProgram } from '../../support/child-process.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function fail(): never {
  throw new Error('out of something');
}

function boundary(): { faults: FaultBoundary; reports: string[] } {
  const reports: string[] = [];
  return {
    faults: new FaultBoundary((where, error) => void reports.push(`${where}: ${errorMessage(error)}`)),
    reports,
  };
}

describe('a fault boundary', () => {
  it('reports and counts what a callback throws', () => {
    const { faults, reports } = boundary();
    faults.run('a signal', fail);
    faults.run('a signal', () => {});
    assert.deepEqual(reports, ['a signal: out of something']);
    assert.equal(faults.count, 1);
  });

  it('reports the failure of a promise that a callback returns', async () => {
    const { faults, reports } = boundary();
    faults.run('a flush', async () => fail());
    await eventually(() => faults.count === 1, 'the report');
    assert.deepEqual(reports, ['a flush: out of something']);
  });

  it('contains what the engine itself throws: an array that is over-full, a text that is too long, a stack without end', async () => {
    const { faults, reports } = boundary();
    const full: number[] = [];
    full.length = 2 ** 32 - 1;
    const deepen = (): number => deepen() + 1;
    faults.run('a timer', () => full.push(1, 2));
    faults.run('a message', () => 'x'.repeat(2 ** 29).repeat(2));
    faults.run('a signal', deepen);
    faults.run('a flush', async () => new Array(-1));
    await eventually(() => faults.count === 4, 'the reports');
    assert.deepEqual(reports, [
      'a timer: Invalid array length',
      'a message: Invalid string length',
      'a signal: Maximum call stack size exceeded',
      'a flush: Invalid array length',
    ]);
  });

  it('counts a fault that cannot be reported', () => {
    const faults = new FaultBoundary(fail);
    faults.run('a signal', fail);
    assert.equal(faults.count, 1);
  });

  it('lets the timers of a clock fail', () => {
    const { faults, reports } = boundary();
    const inner = new ManualClock();
    const clock = faults.clock(inner);
    let fired = 0;
    clock.after(10, fail);
    clock.after(20, () => {
      fired += 1;
    });
    clock.after(30, fail)();
    inner.turn(100);
    assert.deepEqual(reports, ['a timer: out of something']);
    assert.equal(fired, 1);
    assert.equal(clock.monotonicMs(), inner.monotonicMs());
  });

  it('is the last resort of its thread until it is lifted', async () => {
    const program = `
      import { FaultBoundary } from ${JSON.stringify(import.meta.resolve('../../../src/base/fault-boundary.ts'))};
      const faults = new FaultBoundary((where, error) => console.log(where + ': ' + error.message));
      const lift = faults.containUncaught();
      setImmediate(() => { throw new Error('thrown'); });
      Promise.reject(new Error('rejected'));
      const end = () => { console.log(faults.count); lift(); throw new Error('the end'); };
      setImmediate(() => setImmediate(end));
    `;
    const { code, stdout, stderr } = await runProgram(process.execPath, ['--input-type=module', '-e', program]);
    const lines = stdout.trimEnd().split('\n');
    assert.deepEqual(lines.slice(0, 2).sort(), ['an event handler: rejected', 'an event handler: thrown']);
    assert.equal(lines[2], '2');
    assert.equal(code, 1);
    assert.match(stderr, /the end/);
  });
});
