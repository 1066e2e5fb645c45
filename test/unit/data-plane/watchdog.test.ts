import assert from 'node:assert/strict';
import { it } from 'node:test';
import { watchMain } from '../../../src/data-plane/watchdog.ts';
import { Loggers } from '../../../src/log/index.ts';
import type { SharedRecords } from '../../../src/wasm/shared-memory.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const OFF = { missMs: 0, megaMissMs: 0 };
const LOG = new Loggers({ levels: { default: 'off' }, sink: { write() {} }, threadId: 0 }).get('main');

it('a worker has begun as soon as it watches: one that is stuck before its first turn is silent, not unborn', () => {
  const counts = new Map([[1, 0]]);
  const records = {
    count: (record: number) => counts.get(record) ?? 0,
    addCount: (record: number, n: number) => counts.set(record, (counts.get(record) ?? 0) + n).size,
  } as unknown as SharedRecords;
  const clock = new ManualClock();
  const settings = { intervalMs: 10, beats: 1, mainBeats: 2, limits: OFF, killMs: 0, statBlocks: null };
  const end = watchMain(settings, { clock, records, log: LOG, stats: { values: new Float64Array(1), base: () => 0 } });
  assert.equal(counts.get(1), 1);
  clock.turn(10);
  assert.equal(counts.get(1), 2);
  end();
});
