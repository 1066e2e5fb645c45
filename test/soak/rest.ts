// Rest: no client and no upstream is there any more, so everything that was open has to be closed.

import { setTimeout as delay } from 'node:timers/promises';
import type { WeirProcess } from '../support/weir-process.ts';
import { bookFaults, parseStats, type Stats } from './books.ts';
import type { Ledger } from './ledger.ts';

const REST_LIMIT_MS = 60_000;
const POLL_MS = 100;
const NONE = /^$/;

/** Waits until nothing is open and every book balances, but for what the pattern excuses. */
export async function untilAtRest(weir: WeirProcess, ledger: Ledger, excused: RegExp = NONE): Promise<Stats> {
  const giveUpAt = performance.now() + REST_LIMIT_MS;
  for (;;) {
    const stats = parseStats(await weir.admin('/stats'));
    const faults = bookFaults(stats).filter((fault) => !excused.test(fault));
    if (faults.length === 0) return stats;
    if (performance.now() > giveUpAt) {
      for (const fault of faults) ledger.violation(`books: ${fault}`);
      return stats;
    }
    await delay(POLL_MS);
  }
}
