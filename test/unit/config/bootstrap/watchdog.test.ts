import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultTexts, load, mustLoad } from '../../../support/bootstrap.ts';

const DEFAULTS = {
  missMs: 200,
  megaMissMs: 1000,
  killMs: 0,
  killJitterMs: 0,
  multikillMs: 0,
  multikillPercent: 0,
};

test('threads are watched also without a word, and ended only where that is said', () => {
  assert.deepEqual(mustLoad({}).watchdogs, { main: DEFAULTS, workers: DEFAULTS });
});

test('the main thread and workers have watchdogs of their own, or one by the older form', () => {
  const worker_watchdog = {
    miss_timeout: '1s',
    megamiss_timeout: '2s',
    kill_timeout: '3s',
    multikill_timeout: '4s',
    multikill_threshold: { value: 50 },
    max_kill_timeout_jitter: '5s',
  };
  const workers = {
    missMs: 1000,
    megaMissMs: 2000,
    killMs: 3000,
    multikillMs: 4000,
    multikillPercent: 50,
    killJitterMs: 5000,
  };
  assert.deepEqual(mustLoad({ watchdogs: { worker_watchdog } }).watchdogs, { main: DEFAULTS, workers });
  assert.deepEqual(mustLoad({ watchdogs: { main_thread_watchdog: worker_watchdog } }).watchdogs, {
    main: workers,
    workers: DEFAULTS,
  });
  const older = { ...DEFAULTS, killMs: 7000 };
  assert.deepEqual(mustLoad({ watchdog: { kill_timeout: '7s' } }).watchdogs, { main: older, workers: older });
});

test('both forms together are refused, and actions are warned of', () => {
  assert.deepEqual(faultTexts(load({ watchdog: {}, watchdogs: {} })), [
    'watchdog: is set together with watchdogs; only one of them may be',
  ]);
  const actions = [
    { config: { name: 'x', typed_config: { '@type': 'type.googleapis.com/google.protobuf.Empty' } }, event: 'MISS' },
  ];
  const warnings = faultTexts(load({ watchdogs: { worker_watchdog: { actions } } }), 'warning');
  assert.match(warnings[0] ?? '', /^watchdogs\.worker_watchdog\.actions: actions is not supported/);
});
