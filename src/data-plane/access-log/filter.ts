// Access log filters, compiled to one test of a finished stream's facts.

import { GrpcStatus } from '../../base/grpc-status.ts';
import { jsonAt } from '../../base/json.ts';
import { compileMetadataMatch } from '../../base/metadata-match.ts';
import type { Random } from '../../base/random.ts';
import { isWithin, type RuntimeValues } from '../../base/runtime.ts';
import type { AccessLogFilter, ComparisonOperator, MetadataMatch, RuntimeSetting } from '../../snapshot/index.ts';
import type { FormatFacts } from '../format/facts.ts';
import { grpcOutcome } from '../format/grpc-outcome.ts';
import { flagBits, NO_FLAGS } from '../response-flags.ts';
import { compileHeaderTest } from '../route/header-matcher.ts';
import { traceReason } from '../tracing/trace-reason.ts';

export type PassesFilter = (facts: FormatFacts) => boolean;

const COMPARISONS: Readonly<Record<ComparisonOperator, (value: number, limit: number) => boolean>> = {
  EQ: (value, limit) => value === limit,
  GE: (value, limit) => value >= limit,
  LE: (value, limit) => value <= limit,
  NE: (value, limit) => value !== limit,
};

export function compileFilter(filter: AccessLogFilter, random: Random, runtime: RuntimeValues): PassesFilter {
  switch (filter.kind) {
    case 'status-code':
    case 'duration-ms':
      return compileComparison(filter.kind, COMPARISONS[filter.operator], filter.value, runtime);
    case 'not-health-check':
      return (facts) => !facts.isHealthCheck;
    case 'fraction': {
      const share = runtime.share(filter.fraction);
      return () => isWithin(share.value, random.u32());
    }
    case 'and': {
      const tests = filter.filters.map((each) => compileFilter(each, random, runtime));
      return (facts) => tests.every((test) => test(facts));
    }
    case 'or': {
      const tests = filter.filters.map((each) => compileFilter(each, random, runtime));
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
    case 'grpc-status': {
      const statuses = new Set(filter.statuses);
      return (facts) => statuses.has(grpcOutcome(facts) ?? GrpcStatus.unknown) !== filter.isExcluded;
    }
    case 'metadata':
      return compileMetadata(filter.match, filter.passesWithout);
    case 'traceable':
      return (facts) => traceReason(facts.requestHeader('x-request-id')) === 'forced';
    case 'log-type': {
      const types = new Set(filter.types);
      return (facts) => types.has(facts.accessLogType) !== filter.isExcluded;
    }
  }
}

function compileMetadata(match: MetadataMatch | null, passesWithout: boolean): PassesFilter {
  if (match === null) return () => passesWithout;
  const test = compileMetadataMatch(match);
  const { namespace, path } = match;
  return (facts) => {
    const metadata = facts.metadata('DYNAMIC');
    return jsonAt(metadata?.[namespace], path) === undefined ? passesWithout : test(metadata);
  };
}

function compileComparison(
  kind: 'status-code' | 'duration-ms',
  compare: (value: number, limit: number) => boolean,
  setting: RuntimeSetting<number>,
  runtime: RuntimeValues,
): PassesFilter {
  const limit = runtime.derived((values) => values.integer(setting.key) ?? setting.default);
  if (kind === 'status-code') return (facts) => compare(facts.status, limit.value);
  return (facts) => compare(facts.durationMs, limit.value);
}
