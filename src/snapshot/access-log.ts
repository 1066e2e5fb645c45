// Access logs as workers write them: where to, in what form, and which entries.

import type { MetadataMatch } from '../base/metadata-match.ts';
import type { Fraction, RuntimeSetting } from '../base/runtime.ts';
import type { LineFormat } from './format.ts';
import type { HeaderMatch } from './route-table.ts';

export type AccessLogDestination =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'stdout' }
  | { readonly kind: 'stderr' };

export type ComparisonOperator = 'EQ' | 'GE' | 'LE' | 'NE';

/** What must hold for an entry to be written. */
export type AccessLogFilter =
  | {
      readonly kind: 'status-code' | 'duration-ms';
      readonly operator: ComparisonOperator;
      readonly value: RuntimeSetting<number>;
    }
  /** Passes all but requests that a health check filter has found to be checks. */
  | { readonly kind: 'not-health-check' }
  | { readonly kind: 'fraction'; readonly fraction: RuntimeSetting<Fraction> }
  | { readonly kind: 'and' | 'or'; readonly filters: readonly AccessLogFilter[] }
  | { readonly kind: 'header'; readonly header: HeaderMatch }
  /** Short names; none stands for any flag at all. */
  | { readonly kind: 'response-flags'; readonly flags: readonly string[] }
  /** A request without a status of gRPC passes as what its status of HTTP stands for. */
  | { readonly kind: 'grpc-status'; readonly statuses: readonly number[]; readonly isExcluded: boolean }
  /** Of what filters have said of the request; without a match, or such a value, `passesWithout` decides. */
  | { readonly kind: 'metadata'; readonly match: MetadataMatch | null; readonly passesWithout: boolean }
  /** Passes requests whose tracing a service has forced. */
  | { readonly kind: 'traceable' }
  /** Names of AccessLogType. */
  | { readonly kind: 'log-type'; readonly types: readonly string[]; readonly isExcluded: boolean };

export interface AccessLogSettings {
  readonly destination: AccessLogDestination;
  readonly format: LineFormat;
  /** Null writes every entry. */
  readonly filter: AccessLogFilter | null;
}

/** A log that an extension writes, elsewhere than to a file. */
export interface ReportedLogSettings {
  readonly logger: {
    /** Name in the registries of both planes, `access_loggers.http_grpc`. */
    readonly name: string;
    /** For the extension alone; anything that can be cloned. */
    readonly settings: unknown;
    /** Counters that it writes, by whole names. */
    readonly wholeCounters: readonly string[];
  };
  /** Null reports every entry. */
  readonly filter: AccessLogFilter | null;
}

/** What the access logs of all workers have in common. */
export interface AccessLogFileSettings {
  /** Buffered entries are written after this time at the latest. */
  readonly flushIntervalMs: number;
  /** First cell of FILESYSTEM_STATS. */
  readonly statBlock: number;
}
