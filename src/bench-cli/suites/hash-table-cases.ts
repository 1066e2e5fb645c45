// The cases that suites of hash tables have in common: building one, as when a host set changes, and the lookups of
// each request.

import type { HashTable } from '../../wasm/lb/hash-table.ts';
import type { LbTables } from '../../wasm/lb/table-builder.ts';
import { hostsOf, openBalancers, QUESTIONS, sessionKeys } from '../balancer-fixture.ts';
import type { BenchCase, OpenCase, SuiteName } from '../case.ts';
import { once } from '../once.ts';
import type { PlainHost } from '../twins/maglev.ts';

export interface PlainTable {
  hashAndLookup(key: string): number;
}

export interface HashTableSuite<Table extends HashTable, Twin extends PlainTable> {
  readonly suite: SuiteName;
  readonly hosts: readonly number[];
  /** Entries of the tables. */
  readonly entries: readonly number[];
  build(tables: LbTables, hosts: readonly PlainHost[], entries: number): Table;
  buildTwin(hosts: readonly PlainHost[], entries: number): Twin;
  /** Each suite has loops of its own: in shared ones a lookup of some ns would wait for the choice between two kinds. */
  lookUpHashes(table: Table, twin: Twin): OpenCase;
}

export function hashTableCases<Table extends HashTable, Twin extends PlainTable>(
  kind: HashTableSuite<Table, Twin>,
): readonly BenchCase[] {
  const { suite } = kind;
  const balancers = once(openBalancers);
  return kind.entries.flatMap((entries) =>
    kind.hosts.flatMap((count): BenchCase[] => {
      const size = `${entries} entries, ${count} hosts`;
      const open = (look: (table: Table, twin: Twin) => OpenCase): OpenCase => {
        const { tables } = balancers();
        const hosts = hostsOf(count);
        const table = kind.build(tables, hosts, entries);
        return { ...look(table, kind.buildTwin(hosts, entries)), close: () => tables.free(table) };
      };
      return [
        { suite, name: `build, ${size}`, open: () => openBuild(kind, balancers().tables, hostsOf(count), entries) },
        { suite, name: `look up a hash, ${size}`, open: () => open(kind.lookUpHashes) },
        { suite, name: `hash and look up a 21-byte key, ${size}`, open: () => open(lookUpKeys) },
      ];
    }),
  );
}

function openBuild<Table extends HashTable, Twin extends PlainTable>(
  kind: HashTableSuite<Table, Twin>,
  tables: LbTables,
  hosts: readonly PlainHost[],
  entries: number,
): OpenCase {
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) tables.free(kind.build(tables, hosts, entries));
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) kind.buildTwin(hosts, entries);
    },
  };
}

function lookUpKeys(table: HashTable, twin: PlainTable): OpenCase {
  const keys = sessionKeys();
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) table.hashAndLookup(keys[n & (QUESTIONS - 1)]!);
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) twin.hashAndLookup(keys[n & (QUESTIONS - 1)]!);
    },
  };
}
