// What a suite is made of. A case measures one operation of the core and, beside it, the same operation of a plain
// TypeScript twin: the ratio of the two is what can be compared from one machine to another.

export interface Sizes {
  /** Hosts in balancer cases. */
  readonly hosts: readonly number[];
  /** Entries of Maglev tables; primes. */
  readonly tableSizes: readonly number[];
  /** Least entries of rings. */
  readonly ringSizes: readonly number[];
}

/** Does the operation `times` times; loops inside, so that operations of a nanosecond can be timed. */
export type Body = (times: number) => void;

export interface OpenCase {
  readonly subject: Body;
  readonly twin: Body;
  /** Operations that one of `times` stands for, 1 when absent: values of a batch, for example. */
  readonly operationsEach?: number;
  /** Frees what the bodies used. */
  close?(): void;
}

export interface BenchCase {
  readonly suite: SuiteName;
  /** Unique within the suite, sizes included. */
  readonly name: string;
  /** Makes what the bodies need; nothing of it is timed. */
  open(): OpenCase;
}

export const SUITE_NAMES = ['histogram', 'maglev', 'ring-hash', 'least-request', 'counters'] as const;
export type SuiteName = (typeof SUITE_NAMES)[number];

/** The cases of a suite at the given sizes. */
export type Suite = (sizes: Sizes) => readonly BenchCase[];
export type Suites = Readonly<Record<SuiteName, Suite>>;

/** Name of a case over all suites: how a report and its baseline find each other's rows. */
export function caseId({ suite, name }: { readonly suite: string; readonly name: string }): string {
  return `${suite}: ${name}`;
}
