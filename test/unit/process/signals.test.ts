import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
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
