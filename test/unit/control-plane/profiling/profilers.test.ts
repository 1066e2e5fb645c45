// What becomes of profilers that nobody stops; the rest is in test/integration/profilers.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import v8 from 'node:v8';
import { engines } from '../../../../src/control-plane/profiling/engines.ts';
import { Profilers, type RunningProfile } from '../../../../src/control-plane/profiling/profilers.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const LOG = new Loggers({ levels: { default: 'off' }, sink: { write() {} }, threadId: 0 }).get('main');
const OPTIONS = { sampleInterval: 1, stackDepth: 2, maxBufferSize: 3 };

function profile(thread: string, given: string[]): RunningProfile {
  return { thread, stop: async () => undefined, giveUp: () => void given.push(thread) };
}

test('all that run are given up with their owner, also one that is about to', async () => {
  const given: string[] = [];
  const late = Promise.withResolvers<RunningProfile[]>();
  const profilers = new Profilers({
    engines: {
      startProfile: async (kind) => (kind === 'heap' ? await late.promise : [profile('main', given)]),
      heaps: () => [],
    },
    clock: new ManualClock(),
    log: LOG,
    path: '/dev/null',
  });
  assert.equal(await profilers.start('cpu'), 'done');
  const starting = profilers.start('heap');
  profilers.close();
  assert.deepEqual(given, ['main']);
  late.resolve([profile('late', given)]);
  assert.deepEqual(await starting, { failure: 'there is nobody any more who could stop it' });
  assert.deepEqual(given, ['main', 'late']);
  assert.equal(await profilers.stop('cpu'), 'is-off');
});

test('the profile of this thread ends before the process does', async (t) => {
  let stops = 0;
  const stop = (): string => {
    stops += 1;
    return `${stops}`;
  };
  t.mock.method(v8, 'startCpuProfile', () => ({ stop }));
  const before = process.listeners('exit');
  const { startProfile } = engines({ startProfile: async () => [], heaps: () => [] });
  const [stopped] = await startProfile('cpu', OPTIONS);
  assert.equal(await stopped!.stop(), '1');
  assert.deepEqual(process.listeners('exit'), before);
  await startProfile('cpu', OPTIONS);
  const added = process.listeners('exit').filter((listener) => !before.includes(listener));
  assert.equal(added.length, 1);
  added[0]!(0);
  assert.equal(stops, 2);
  assert.deepEqual(process.listeners('exit'), before);
});

test('where this thread cannot begin, the others do not go on', async () => {
  const given: string[] = [];
  const workers = { startProfile: async () => [profile('worker_0', given)], heaps: () => [] };
  const { startProfile } = engines(workers);
  const [own] = await startProfile('heap', OPTIONS);
  await assert.rejects(startProfile('heap', OPTIONS), /sampled already/);
  assert.deepEqual(given, ['worker_0']);
  own!.giveUp();
});
