// AccessLogFilter message → AccessLogFilter of snapshots.

import type { AccessLogFilter, ComparisonOperator, Fraction } from '../../../snapshot/index.ts';
import { AccessLogType, ComparisonFilter_Op as Operator } from '../../proto/generated/enums.ts';
import { enumName } from '../enum-name.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { AccessLogFilterMessage, ComparisonFilter } from '../messages.ts';
import { convertMetadataMatch } from '../metadata-match.ts';
import { convertHeaderMatcher } from '../route-match.ts';
import { fractionOf, runtimeIntegerOf } from '../runtime-settings.ts';
import { valueOr } from '../units.ts';

const NEVER: Fraction = { numerator: 0, denominator: 100 };

/** @returns undefined for what this build lacks or what has faults; one exists then. */
export function convertAccessLogFilter(
  message: AccessLogFilterMessage,
  at: string,
  faults: FaultSink,
): AccessLogFilter | undefined {
  switch (message.filter_specifier) {
    case 'status_code_filter':
      return comparison('status-code', message.status_code_filter!.comparison);
    case 'duration_filter':
      return comparison('duration-ms', message.duration_filter!.comparison);
    case 'not_health_check_filter':
      return { kind: 'not-health-check' };
    case 'runtime_filter': {
      const { runtime_key: key, percent_sampled: percent } = message.runtime_filter!;
      return { kind: 'fraction', fraction: { key, default: percent ? fractionOf(percent) : NEVER } };
    }
    case 'and_filter':
      return combination('and', message.and_filter!.filters, `${at}.and_filter.filters`, faults);
    case 'or_filter':
      return combination('or', message.or_filter!.filters, `${at}.or_filter.filters`, faults);
    case 'header_filter': {
      const { header } = message.header_filter!;
      const match = header && convertHeaderMatcher(header, `${at}.header_filter.header`, faults);
      return match ? { kind: 'header', header: match } : undefined;
    }
    case 'response_flag_filter':
      return { kind: 'response-flags', flags: message.response_flag_filter!.flags };
    case 'grpc_status_filter': {
      // The values of the enumeration are the codes.
      const { statuses, exclude } = message.grpc_status_filter!;
      return { kind: 'grpc-status', statuses, isExcluded: exclude };
    }
    case 'metadata_filter': {
      const { matcher, match_if_key_not_found: passesWithout } = message.metadata_filter!;
      const match = matcher && convertMetadataMatch(matcher, `${at}.metadata_filter.matcher`, faults);
      return { kind: 'metadata', match, passesWithout: valueOr(passesWithout, true) };
    }
    case 'traceable_filter':
      return { kind: 'traceable' };
    case 'log_type_filter': {
      const { types, exclude } = message.log_type_filter!;
      return { kind: 'log-type', types: types.map((type) => enumName(AccessLogType, type)), isExcluded: exclude };
    }
    default:
      return undefined;
  }
}

function comparison(kind: 'status-code' | 'duration-ms', message: ComparisonFilter | null): AccessLogFilter {
  const operator = enumName(Operator, message?.op ?? Operator.EQ) as ComparisonOperator;
  return { kind, operator, value: runtimeIntegerOf(message?.value ?? null) };
}

function combination(
  kind: 'and' | 'or',
  messages: readonly AccessLogFilterMessage[],
  at: string,
  faults: FaultSink,
): AccessLogFilter | undefined {
  const filters = messages
    .map((message, index) => convertAccessLogFilter(message, `${at}[${index}]`, faults))
    .filter((filter) => filter !== undefined);
  return filters.length === messages.length ? { kind, filters } : undefined;
}
