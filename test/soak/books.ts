// The books of weir once everything has ended: what began has ended in exactly one way, and nothing is active.

export type Stats = ReadonlyMap<string, number>;

export function parseStats(text: string): Stats {
  const stats = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^(.+): (-?\d+)$/.exec(line);
    if (match && !ADMIN.test(match[1]!)) stats.set(match[1]!, Number(match[2]));
  }
  return stats;
}

/** Gauges of what is open or under way, by the end of their names. */
const OPEN = /(?:_active|_buffered|_open|_connections|_bytes_total_buffered)$/;
/** Not open: what the configuration holds, and counters that are named alike. */
const STANDING = /^(?:cluster_manager|listener_manager|runtime|server)\.|\.limited_connections$|\.write_buffered$/;
/** The admin interface is never at rest: it is what answers. */
const ADMIN = /^(?:http|listener)\.admin\./;

/** One line for every entry that does not add up. Only right when no client and no upstream is there any more. */
export function bookFaults(stats: Stats): string[] {
  const faults = openFaults(stats);
  for (const scope of scopesOf(stats, /^(http\..+)\.downstream_rq_total$/)) {
    const answered = [1, 2, 3, 4, 5].map((digit) => `downstream_rq_${digit}xx`);
    const resets = ['downstream_rq_rx_reset', 'downstream_rq_tx_reset'];
    faults.push(...sumFaults(stats, scope, 'downstream_rq_total', [...answered, ...resets]));
    faults.push(...sumFaults(stats, scope, 'downstream_rq_completed', answered));
  }
  for (const scope of scopesOf(stats, /^(.+)\.downstream_cx_destroy$/)) {
    faults.push(...sumFaults(stats, scope, 'downstream_cx_total', ['downstream_cx_destroy']));
  }
  for (const scope of scopesOf(stats, /^(.+)\.upstream_cx_destroy$/)) {
    faults.push(...sumFaults(stats, scope, 'upstream_cx_total', ['upstream_cx_destroy']));
  }
  return faults;
}

function openFaults(stats: Stats): string[] {
  return [...stats].flatMap(([name, value]) =>
    OPEN.test(name) && !STANDING.test(name) && value !== 0 ? [`${name} is ${value}, expected 0`] : [],
  );
}

function scopesOf(stats: Stats, pattern: RegExp): string[] {
  return [...stats.keys()].flatMap((name) => pattern.exec(name)?.[1] ?? []);
}

function sumFaults(stats: Stats, scope: string, whole: string, parts: readonly string[]): string[] {
  const values = parts.map((part) => [part, stats.get(`${scope}.${part}`) ?? 0] as const);
  const sum = values.reduce((total, [, value]) => total + value, 0);
  const expected = stats.get(`${scope}.${whole}`) ?? 0;
  if (sum === expected) return [];
  const terms = values.map(([part, value]) => `${part} ${value}`).join(' + ');
  return [`${scope}: ${whole} is ${expected}, but ${terms} is ${sum}`];
}
