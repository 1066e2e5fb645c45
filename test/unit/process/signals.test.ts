import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorMessage } from '../../../src/base/errors.ts';
import { FaultBoundary } from '../../../src/base/fault-boundary.ts';
import { handleSignals } from '../../../src/process/signals.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** What the process was told to do by signals sent at these times. */
function actionsAfter(signals: readonly (readonly [atMs: number, signal: NodeJS.Signals])[]): string[] {
  const clock = new ManualClock();
  const actions: string[] = [];
  const release = handleSignals(
    {
      stop: () => void actions.push('stop'),
      stopAtOnce: () => void actions.push('stop at once'),
      reopenLogs: () => void actions.push('reopen logs'),
    },
    clock,
    new FaultBoundary(() => {}),
  );
  let nowMs = 0;
  for (const [atMs, signal] of signals) {
    clock.turn(atMs - nowMs);
    nowMs = atMs;
    process.emit(signal, signal);
  }
  release();
  process.emit('SIGTERM', 'SIGTERM');
  return actions;
}

describe('signals', () => {
  it('cost a report when what they order fails', () => {
    const faults: string[] = [];
    const fail = (): never => {
      throw new Error('no descriptor');
    };
    const release = handleSignals(
      { stop: fail, stopAtOnce: fail, reopenLogs: fail },
      new ManualClock(),
      new FaultBoundary((where, error) => void faults.push(`${where}: ${errorMessage(error)}`)),
    );
    process.emit('SIGUSR1', 'SIGUSR1');
    process.emit('SIGTERM', 'SIGTERM');
    release();
    assert.deepEqual(faults, ['SIGUSR1: no descriptor', 'SIGTERM: no descriptor']);
  });

  it('a first SIGTERM or SIGINT stops, a second one stops at once', () => {
    assert.deepEqual(
      actionsAfter([
        [0, 'SIGTERM'],
        [2_000, 'SIGINT'],
      ]),
      ['stop', 'stop at once'],
    );
  });

  it('an echo of the first is not a second', () => {
    assert.deepEqual(
      actionsAfter([
        [0, 'SIGINT'],
        [30, 'SIGINT'],
      ]),
      ['stop', 'stop'],
    );
  });

  it('SIGUSR1 reopens the logs and SIGHUP does nothing', () => {
    assert.deepEqual(
      actionsAfter([
        [0, 'SIGHUP'],
        [1, 'SIGUSR1'],
      ]),
      ['reopen logs'],
    );
  });
});
