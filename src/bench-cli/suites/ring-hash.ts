// Hash rings: building one, as when a host set changes, and the lookups of each request.

import { type Balancers, hashes, hostsOf, openBalancers, QUESTIONS, sessionKeys } from '../balancer-fixture.ts';
import type { BenchCase, OpenCase, Sizes } from '../case.ts';
import { once } from '../once.ts';
import { PlainRing } from '../twins/ring-hash.ts';

const LARGEST_RING = 8_388_608;

export function ringHashCases({ hosts, ringSizes }: Sizes): readonly BenchCase[] {
  const balancers = once(openBalancers);
  return ringSizes.flatMap((minimumRingSize) =>
    hosts.flatMap((count): BenchCase[] => {
      const size = `${minimumRingSize} entries, ${count} hosts`;
      return [
        { suite: 'ring-hash', name: `build, ${size}`, open: () => openBuild(balancers(), count, minimumRingSize) },
        {
          suite: 'ring-hash',
          name: `look up a hash, ${size}`,
          open: () => openLookup(balancers(), count, minimumRingSize),
        },
        {
          suite: 'ring-hash',
          name: `hash and look up a 21-byte key, ${size}`,
          open: () => openKeyLookup(balancers(), count, minimumRingSize),
        },
      ];
    }),
  );
}

function openBuild({ tables }: Balancers, count: number, minimumRingSize: number): OpenCase {
  const hosts = hostsOf(count);
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) tables.free(tables.buildRing(hosts, { minimumRingSize }));
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) new PlainRing(hosts, minimumRingSize, LARGEST_RING);
    },
  };
}

function openLookup(balancers: Balancers, count: number, minimumRingSize: number): OpenCase {
  const { table, twin, close } = openTables(balancers, count, minimumRingSize);
  const { hi, lo } = hashes();
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) table.lookup(hi[n & (QUESTIONS - 1)]!, lo[n & (QUESTIONS - 1)]!, 0);
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) twin.lookup(hi[n & (QUESTIONS - 1)]!, lo[n & (QUESTIONS - 1)]!);
    },
    close,
  };
}

function openKeyLookup(balancers: Balancers, count: number, minimumRingSize: number): OpenCase {
  const { table, twin, close } = openTables(balancers, count, minimumRingSize);
  const keys = sessionKeys();
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) table.hashAndLookup(keys[n & (QUESTIONS - 1)]!);
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) twin.hashAndLookup(keys[n & (QUESTIONS - 1)]!);
    },
    close,
  };
}

function openTables({ tables }: Balancers, count: number, minimumRingSize: number) {
  const hosts = hostsOf(count);
  const table = tables.buildRing(hosts, { minimumRingSize });
  return { table, twin: new PlainRing(hosts, minimumRingSize, LARGEST_RING), close: () => tables.free(table) };
}
