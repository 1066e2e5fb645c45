// What very many stats take in a process that has nothing else, as JSON: bytes that have become resident with each, when they
// are there and when all have been listed once. What comes and goes meanwhile, and what a start has left, is given back before each
// look, so that it does not count.
//
//   node bench/support/stats-memory.ts CLUSTERS

import { giveBackMemory } from '../../src/base/garbage.ts';
import { manyStats } from './many-stats.ts';

function residentBytes(): number {
  giveBackMemory();
  return process.memoryUsage.rss();
}

// What is loaded and compiled with the first stats stays out of it.
const few = await manyStats(100, false);
for await (const _batch of few.store.countersAndGauges());
const before = residentBytes();
const { store } = await manyStats(Number(process.argv[2]), false);
const made = residentBytes() - before;
let count = 0;
for await (const batch of store.countersAndGauges()) count += batch.length;
const listed = residentBytes() - before;
process.stdout.write(JSON.stringify({ made: made / count, listed: listed / count }));
