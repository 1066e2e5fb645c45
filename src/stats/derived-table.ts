// Gauges that are worked out when somebody reads them, because no single thread could keep them: declared once for all owners,
// as stats with cells are. An owner keeps no more than what they are worked out from.

import { byName } from './stat-table.ts';

export interface DerivedRow<Source> {
  /** What follows the owner's prefix. */
  readonly name: string;
  /** Place in the table, 0 to 30. */
  readonly index: number;
  read(source: Source): number;
}

export interface DerivedTable<Source> {
  readonly rowsByName: readonly DerivedRow<Source>[];
}

/** A derived gauge counts as used once a reader has seen it differ from 0: owners have a bit for each. */
const MAX_ROWS = 31;

export function derivedTable<Source>(
  declared: Readonly<Record<string, (source: Source) => number>>,
): DerivedTable<Source> {
  const rows = Object.entries(declared).map(([name, read], index) => ({ name, index, read }));
  if (rows.length > MAX_ROWS) throw new RangeError(`${rows.length} rows, at most ${MAX_ROWS} are possible`);
  return { rowsByName: rows.sort(byName) };
}

/** The derived gauges of one owner. */
export interface Derivation<Source = unknown> {
  readonly table: DerivedTable<Source>;
  source: Source;
  /** A bit for each row that has been seen to differ from 0. */
  seen: number;
}
