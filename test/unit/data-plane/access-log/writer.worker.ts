// A thread that writes numbered entries of various lengths, in the way of a data-plane worker.

import { workerData } from 'node:worker_threads';
import { SYSTEM_CLOCK } from '../../../../src/base/clock.ts';
import { LogFile, MAX_WAITING_BYTES } from '../../../../src/data-plane/access-log/log-file.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { FILESYSTEM_STATS } from '../../../../src/stats/tables/managers.ts';
import { statsFixture } from '../../../support/stats.ts';

const { path, index, entries } = workerData as { path: string; index: number; entries: number };
const { owner, workers } = statsFixture({ workerCount: 1 });
const { stats } = workers[0]!;
const statBase = stats.base(owner.cells.allocate(FILESYSTEM_STATS.size));
const file = new LogFile(path, {
  stats,
  statBase,
  clock: SYSTEM_CLOCK,
  log: new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }).get('filter'),
  flushIntervalMs: 10,
});

function waitingBytes(): number {
  return stats.values[statBase + FILESYSTEM_STATS.index.write_total_buffered]!;
}

for (let number = 0; number < entries; number++) {
  file.write(`${index} ${number} ${'='.repeat(number % 300)}.\n`);
  if (number % 100 !== 0) continue;
  // A request now and then lets the other work go on; a slow disk must not make the log drop what the test counts.
  do await new Promise<void>((resolve) => setImmediate(resolve));
  while (waitingBytes() > MAX_WAITING_BYTES / 2);
}
await file.close();
