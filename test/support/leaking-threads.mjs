// Loaded into every thread of a program under test (NODE_OPTIONS=--import): has a thread fill its heap, once, when a file says its
// name, `main` or `worker_0`; the file is emptied before, so that its successor goes on.

import { readFileSync, writeFileSync } from 'node:fs';
import { isMainThread, threadName } from 'node:worker_threads';

const file = process.env.WEIR_TEST_LEAKING_THREADS;
const ownName = isMainThread ? 'main' : threadName;

function leakWhenTold() {
  if (readFileSync(file, 'utf8') !== ownName) return;
  writeFileSync(file, '');
  const kept = [];
  for (let index = 0; ; index += 1) kept.push({ index, text: `of ${index}` });
}

setInterval(leakWhenTold, 5).unref();
