// Loaded into every thread of a program under test (NODE_OPTIONS=--import): has a thread do nothing else while a file says its
// name, `main` or `worker_0`.

import { readFileSync } from 'node:fs';
import { isMainThread, threadName } from 'node:worker_threads';

const file = process.env.WEIR_TEST_BLOCKED_THREADS;

const ownName = isMainThread ? 'main' : threadName;

function isBlocked() {
  try {
    return readFileSync(file, 'utf8').split(' ').includes(ownName);
  } catch {
    return false;
  }
}

/** Between two looks at the file, which are system calls and no place in a program. */
const CIRCLES = 5_000;

/** Short: a profiler that comes later finds only functions that have been called since. */
function turnInCircles() {
  let sum = 0;
  for (let step = 0; step < 10_000; step += 1) sum += Math.sqrt(step);
  return sum;
}

function spinWhileBlocked() {
  while (isBlocked()) for (let circle = 0; circle < CIRCLES; circle += 1) turnInCircles();
}

setInterval(spinWhileBlocked, 5).unref();
