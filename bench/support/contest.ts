// Contenders for one operation, measured in turns within one process, so that a busy neighbour or a slow clock
// meets all of them alike. What counts is therefore the ratio to the reference of the same run.

/** Runs the operation `count` times; the loop is the contender's own, so that nothing but it is measured. */
export type Contender = (count: number) => void;

export interface ContestOptions {
  /** The first contender is the reference that the others' ratios are taken to. */
  readonly contenders: Readonly<Record<string, Contender>>;
  /** Operations at a time while warming up. */
  readonly count: number;
  /** Operations before the first turn, or WARM_UP_MS of them; compilers need some millions of cheap ones. */
  readonly warmUp?: number;
  readonly rounds?: number;
  /** What one operation counts for, such as 10 for a call that takes 10 values. */
  readonly unitsPerOperation?: number;
}

export interface ContestRow {
  readonly name: string;
  /** Nanoseconds per unit: median, and the best round, which a busy machine disturbs least. */
  readonly medianNs: number;
  readonly bestNs: number;
  /** Of the first 100 operations of the process. */
  readonly coldNs: number;
  /** Median of the reference's time divided into this one's, round by round. */
  readonly ratio: number;
}

const DEFAULT_WARM_UP = 3_000_000;
const DEFAULT_ROUNDS = 21;
const COLD_OPERATIONS = 100;
const WARM_UP_MS = 1500;
/** Turns take equal time, long enough for what the contender before has pushed out of the caches to come back. */
const TURN_NS = 5_000_000;

export function contest(options: ContestOptions): ContestRow[] {
  const { contenders, count, warmUp = DEFAULT_WARM_UP, rounds = DEFAULT_ROUNDS, unitsPerOperation = 1 } = options;
  const entries = Object.entries(contenders);
  const time = (run: Contender, operations: number): number => {
    const start = process.hrtime.bigint();
    run(operations);
    return Number(process.hrtime.bigint() - start) / operations / unitsPerOperation;
  };
  const cold = entries.map(([, run]) => time(run, COLD_OPERATIONS));
  for (const [, run] of entries) warm(run, count, warmUp);
  const counts = entries.map(([, run]) => Math.ceil(TURN_NS / unitsPerOperation / time(run, count)));
  const times = entries.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, [, run]] of entries.entries()) times[at]!.push(time(run, counts[at]!));
  }
  return entries.map(([name], at) => ({
    name,
    medianNs: median(times[at]!),
    bestNs: Math.min(...times[at]!),
    coldNs: cold[at]!,
    ratio: median(times[at]!.map((ns, round) => ns / times[0]![round]!)),
  }));
}

function warm(run: Contender, count: number, operations: number): void {
  const endsAt = performance.now() + WARM_UP_MS;
  for (let done = 0; done < operations && performance.now() < endsAt; done += count) run(count);
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

/** Prints one contest as a table. */
export function printContest(title: string, rows: readonly ContestRow[]): void {
  console.log(`\n${title}, ns`);
  const shown = rows.map((row) => [
    row.name,
    {
      median: Number(row.medianNs.toPrecision(3)),
      best: Number(row.bestNs.toPrecision(3)),
      'first 100': Number(row.coldNs.toPrecision(3)),
      [`x of ${rows[0]!.name}`]: Number(row.ratio.toPrecision(3)),
    },
  ]);
  console.table(Object.fromEntries(shown));
}
