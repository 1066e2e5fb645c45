// Maglev tables: building one, as when a host set changes, and the lookups of each request.

import { type Balancers, hashes, hostsOf, openBalancers, QUESTIONS, sessionKeys } from '../balancer-fixture.ts';
import type { BenchCase, OpenCase, Sizes } from '../case.ts';
import { once } from '../once.ts';
import { PlainMaglev } from '../twins/maglev.ts';

export function maglevCases({ hosts, tableSizes }: Sizes): readonly BenchCase[] {
  const balancers = once(openBalancers);
  return tableSizes.flatMap((tableSize) =>
    hosts.flatMap((count): BenchCase[] => {
      const size = `${tableSize} entries, ${count} hosts`;
      return [
        { suite: 'maglev', name: `build, ${size}`, open: () => openBuild(balancers(), count, tableSize) },
        { suite: 'maglev', name: `look up a hash, ${size}`, open: () => openLookup(balancers(), count, tableSize) },
        {
          suite: 'maglev',
          name: `hash and look up a 21-byte key, ${size}`,
          open: () => openKeyLookup(balancers(), count, tableSize),
        },
      ];
    }),
  );
}

function openBuild({ tables }: Balancers, count: number, tableSize: number): OpenCase {
  const hosts = hostsOf(count);
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) tables.free(tables.buildMaglev(hosts, { tableSize }));
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) new PlainMaglev(hosts, tableSize);
    },
  };
}

function openLookup(balancers: Balancers, count: number, tableSize: number): OpenCase {
  const { table, twin, close } = openTables(balancers, count, tableSize);
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

function openKeyLookup(balancers: Balancers, count: number, tableSize: number): OpenCase {
  const { table, twin, close } = openTables(balancers, count, tableSize);
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

function openTables({ tables }: Balancers, count: number, tableSize: number) {
  const hosts = hostsOf(count);
  const table = tables.buildMaglev(hosts, { tableSize });
  return { table, twin: new PlainMaglev(hosts, tableSize), close: () => tables.free(table) };
}
