// Maglev tables of the sizes asked for.

import { hashes, QUESTIONS } from '../balancer-fixture.ts';
import type { BenchCase, Sizes } from '../case.ts';
import { PlainMaglev } from '../twins/maglev.ts';
import { hashTableCases } from './hash-table-cases.ts';

export function maglevCases({ hosts, tableSizes }: Sizes): readonly BenchCase[] {
  return hashTableCases({
    suite: 'maglev',
    hosts,
    entries: tableSizes,
    build: (tables, hosts, tableSize) => tables.buildMaglev(hosts, { tableSize }),
    buildTwin: (hosts, tableSize) => new PlainMaglev(hosts, tableSize),
    lookUpHashes(table, twin) {
      const { hi, lo } = hashes();
      return {
        subject: (times) => {
          for (let n = 0; n < times; n += 1) table.lookup(hi[n & (QUESTIONS - 1)]!, lo[n & (QUESTIONS - 1)]!, 0);
        },
        twin: (times) => {
          for (let n = 0; n < times; n += 1) twin.lookup(hi[n & (QUESTIONS - 1)]!, lo[n & (QUESTIONS - 1)]!);
        },
      };
    },
  });
}
