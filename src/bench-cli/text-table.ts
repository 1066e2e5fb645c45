// Tables of the terminal: columns of equal width, text to the left, figures to the right.

export interface Column {
  readonly title: string;
  readonly isFigure?: boolean;
}

export function textTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map(({ title }, at) => Math.max(title.length, ...rows.map((row) => row[at]!.length)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (columns[at]!.isFigure ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!)))
      .join('  ')
      .trimEnd();
  const head = line(columns.map(({ title }) => title));
  return `${[head, '-'.repeat(head.length), ...rows.map(line)].join('\n')}\n`;
}

const UNITS: readonly (readonly [unit: string, ns: number])[] = [
  ['s', 1e9],
  ['ms', 1e6],
  ['us', 1e3],
];

/** `3.42 ns`, `17.3 us`: three significant digits. */
export function formatNs(ns: number): string {
  const [unit, size] = UNITS.find(([, least]) => ns >= least) ?? ['ns', 1];
  return `${significant(ns / size)} ${unit}`;
}

/** Three significant digits, never as a power of ten. */
export function significant(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 6));
}
