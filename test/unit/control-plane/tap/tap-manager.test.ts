import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TapManager, type TapOptions } from '../../../../src/control-plane/tap/tap-manager.ts';
import type { TapSession, TapTrace } from '../../../../src/snapshot/index.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const OPTIONS: TapOptions = {
  configId: 'edge',
  match: { kind: 'any' },
  maxRequestBytes: 1,
  maxResponseBytes: 1,
  isStreamed: false,
  enabled: null,
  timeoutMs: 0,
};

function traceOf(size = 1): TapTrace {
  const body = { bytes: new Uint8Array(size), isTruncated: false };
  return { kind: 'piece', exchangeId: 1, piece: { part: 'request_body_chunk', body } };
}

function startManager(configIds: string[] = ['edge']) {
  const clock = new ManualClock();
  const published: (TapSession | null)[] = [];
  const stats = { active: 0, traces_total: 0, traces_dropped: 0 };
  const manager = new TapManager({
    faults: NO_FAULTS,
    clock,
    log: { warning() {} },
    publish: (session) => published.push(session),
    configIds: () => new Set(configIds),
    stats: {
      add: (name, n = 1) => {
        stats[name] += n;
      },
      set: (name, value) => {
        stats[name] = value;
      },
    },
  });
  const begin = (changes: Partial<TapOptions> = {}) => {
    const feed = manager.begin({ ...OPTIONS, ...changes });
    assert.ok(typeof feed !== 'string');
    return feed;
  };
  return { clock, published, stats, manager, begin };
}

test('workers are told of a tap, and of its end at once when its reader leaves', () => {
  const { manager, published, stats, begin } = startManager();
  const feed = begin();
  assert.equal(published.at(-1)?.id, 1);
  assert.equal('timeoutMs' in published.at(-1)!.settings, false);
  assert.equal(stats.active, 1);
  feed.close();
  assert.equal(published.at(-1), null);
  assert.equal(stats.active, 0);
  begin();
  assert.equal(published.at(-1)?.id, 2);
  assert.equal(manager.isConfigured, true);
});

test('there is one tap at a time, of a filter that there is', () => {
  const { manager, begin, published } = startManager();
  assert.equal(manager.begin({ ...OPTIONS, configId: 'core' }), 'unknown-config-id');
  begin();
  assert.equal(manager.begin(OPTIONS), 'attached');
  assert.equal(published.length, 1);
  assert.equal(startManager([]).manager.isConfigured, false);
});

test('traces reach the reader, and those of taps before do not', async () => {
  const { manager, stats, begin } = startManager();
  begin().close();
  const feed = begin();
  manager.traced(1, traceOf(), 5);
  manager.dropped(1, 5);
  const trace = traceOf();
  manager.traced(2, trace, 0);
  assert.deepEqual(await feed.next(), { done: false, value: trace });
  assert.deepEqual(stats, { active: 1, traces_total: 1, traces_dropped: 0 });
});

test('what neither worker nor reader could take is counted', () => {
  const { manager, stats, begin } = startManager();
  begin();
  for (let at = 0; at < 10; at += 1) manager.traced(1, traceOf(1024 * 1024), 1);
  manager.dropped(1, 4);
  assert.deepEqual(stats, { active: 1, traces_total: 7, traces_dropped: 10 + 3 + 4 });
});

test('a tap with a time ends then, and what waits is still read', async () => {
  const { manager, clock, published, begin } = startManager();
  const feed = begin({ timeoutMs: 1000 });
  const trace = traceOf();
  manager.traced(1, trace, 0);
  clock.turn(999);
  assert.notEqual(published.at(-1), null);
  clock.turn(1);
  assert.equal(published.at(-1), null);
  assert.deepEqual(await feed.next(), { done: false, value: trace });
  assert.equal((await feed.next()).done, true);
  const again = begin({ timeoutMs: 1000 });
  again.close();
  assert.equal(clock.timerCount, 0);
});

test('the end of the server is the end of the tap', async () => {
  const { manager, stats, begin } = startManager();
  const feed = begin();
  manager.close();
  assert.equal((await feed.next()).done, true);
  assert.equal(stats.active, 0);
  manager.close();
});
