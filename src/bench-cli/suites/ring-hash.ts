// Hash rings of the sizes asked for.

import { hashes, QUESTIONS } from '../balancer-fixture.ts';
import type { BenchCase, Sizes } from '../case.ts';
import { PlainRing } from '../twins/ring-hash.ts';
import { hashTableCases } from './hash-table-cases.ts';

const LARGEST_RING = 8_388_608;

export function ringHashCases({ hosts, ringSizes }: Sizes): readonly BenchCase[] {
  return hashTableCases({
    suite: 'ring-hash',
    hosts,
    entries: ringSizes,
    build: (tables, hosts, minimumRingSize) => tables.buildRing(hosts, { minimumRingSize }),
    buildTwin: (hosts, minimumRingSize) => new PlainRing(hosts, minimumRingSize, LARGEST_RING),
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
