// How long the threads of this process have waited for processors, as Linux counts it (/proc/<pid>/task/<tid>). Any thread; it
// reads two small files for each thread.

import { readdirSync, readFileSync } from 'node:fs';

/** Sums over the threads that there are now, since each of them started. */
export interface ProcessorWaits {
  /** How often a thread that wanted to go on had to let another have its processor. */
  readonly preemptions: number;
  /** Nanoseconds in which threads could have run and had no processor. */
  readonly waitedNs: number;
}

const TASKS = '/proc/self/task';
const PREEMPTIONS = /^nonvoluntary_ctxt_switches:\s*(\d+)$/m;

/** Undefined where the system does not tell. */
export function readProcessorWaits(): ProcessorWaits | undefined {
  try {
    let [preemptions, waitedNs, known] = [0, 0, 0];
    for (const thread of readdirSync(TASKS)) {
      const own = readThread(`${TASKS}/${thread}`);
      if (own === undefined) continue;
      known += 1;
      preemptions += own.preemptions;
      waitedNs += own.waitedNs;
    }
    return known === 0 ? undefined : { preemptions, waitedNs };
  } catch {
    return undefined;
  }
}

/** Undefined for a thread that has ended meanwhile. */
function readThread(folder: string): ProcessorWaits | undefined {
  try {
    // Time on processors, time of waiting for one, and how often it ran.
    const [, waitedNs] = readFileSync(`${folder}/schedstat`, 'utf8').trim().split(' ');
    const [, preemptions] = PREEMPTIONS.exec(readFileSync(`${folder}/status`, 'utf8')) ?? [];
    return waitedNs === undefined ? undefined : { preemptions: Number(preemptions ?? 0), waitedNs: Number(waitedNs) };
  } catch {
    return undefined;
  }
}
