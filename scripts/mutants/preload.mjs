// Loaded first by every process and thread of a test run: says where the instrumented sources count. In the first run,
// without a mutant, the ids of all mutants that are reached go to a file as they are met, because many threads and
// programs of the tests are killed and would lose what they note at their end.

import { openSync, writeSync } from 'node:fs';
import path from 'node:path';
import { threadId } from 'node:worker_threads';

/** A mutant that runs this often in one thread has made an endless loop. */
const HIT_LIMIT = 5_000_000;

const folder = process.env.WEIR_MUTANTS_COVERAGE;
globalThis.__stryker__ = folder
  ? { mutantCoverage: { static: recordOfHits(folder), perTest: {} } }
  : { hitCount: 0, hitLimit: HIT_LIMIT };

function recordOfHits(folder) {
  const file = openSync(path.join(folder, `${process.pid}-${threadId}`), 'a');
  return new Proxy(Object.create(null), {
    set(hits, mutantId, count) {
      if (!(mutantId in hits)) writeSync(file, `${mutantId}\n`);
      hits[mutantId] = count;
      return true;
    },
  });
}
