// Access log filters, compiled to one test of a finished stream's facts.

import type { Random } from '../../base/random.ts';
import type { AccessLogFilter, ComparisonOperator, Fraction } from '../../snapshot/index.ts';
import type { FormatFacts } from '../format/facts.ts';
import { flagBits, NO_FLAGS } from '../response-flags.ts';
import { compileHeaderTest } from '../route/header-matcher.ts';

export type PassesFilter = (facts: FormatFacts) => boolean;

const COMPARISONS: Readonly<Record<ComparisonOperator, (value: number, limit: number) => boolean>> = {
  EQ: (value, limit) => value === limit,
  GE: (value, limit) => value >= limit,
  LE: (value, limit) => value <= limit,
  NE: (value, limit) => value !== limit,
};
const RANDOM_VALUES = 2 ** 32;

export function compileFilter(filter: AccessLogFilter, random: Random): PassesFilter {
  switch (filter.kind) {
    case 'status-code':
    case 'duration-ms':
      return compileComparison(filter.kind, COMPARISONS[filter.operator], filter.value);
    case 'not-health-check':
      return (facts) => !facts.isHealthCheck;
    case 'fraction':
      return compileFraction(filter.fraction, random);
    case 'and': {
      const tests = filter.filters.map((each) => compileFilter(each, random));
      return (facts) => tests.every((test) => test(facts));
    }
    case 'or': {
      const tests = filter.filters.map((each) => compileFilter(each, random));
      return (facts) => tests.some((test) => test(facts));
    }
    case 'header': {
      const passes = compileHeaderTest(filter.header);
      return (facts) => passes(facts.requestHeader(filter.header.name));
    }
    case 'response-flags': {
      const bits = filter.flags.length === 0 ? ~NO_FLAGS : flagBits(filter.flags);
      return (facts) => (facts.flags & bits) !== 0;
    }
    case 'log-type': {
      const types = new Set(filter.types);
      return (facts) => types.has(facts.accessLogType) !== filter.isExcluded;
    }
  }
}

function compileComparison(
  kind: 'status-code' | 'duration-ms',
  compare: (value: number, limit: number) => boolean,
  limit: number,
): PassesFilter {
  return kind === 'status-code' ? (facts) => compare(facts.status, limit) : (facts) => compare(facts.durationMs, limit);
}

function compileFraction({ numerator, denominator }: Fraction, random: Random): PassesFilter {
  const share = numerator / denominator;
  if (share >= 1) return () => true;
  return () => random.u32() / RANDOM_VALUES < share;
}
