// What the redis_proxy filter and its configuration share.

import type { Fraction, RuntimeSetting } from '../../../snapshot/index.ts';

/** Counters behind `redis.<stat_prefix>.`; single commands have theirs beside these. */
export type RedisCounter =
  | 'downstream_cx_total'
  | 'downstream_cx_protocol_error'
  | 'downstream_cx_rx_bytes_total'
  | 'connection_rate_limited'
  | 'downstream_cx_tx_bytes_total'
  | 'downstream_rq_total'
  | 'splitter.invalid_request'
  | 'splitter.unsupported_command';

export type RedisGauge = 'downstream_cx_active' | 'downstream_rq_active';

export interface RedisSettings {
  /** All of them. */
  readonly counters: readonly RedisCounter[];
  readonly gauges: readonly RedisGauge[];
  /** Longest prefix first; what has none of them goes to the last, if its prefix is empty. */
  readonly routes: readonly RedisRoute[];
  /** Of keys and prefixes. */
  readonly ignoresCase: boolean;
  readonly pool: RedisPoolSettings;
  /** Null: who comes may come in. */
  readonly auth: RedisAuth | null;
  /** In the order of the configuration. */
  readonly faults: readonly RedisFault[];
  readonly hasCommandStats: boolean;
  readonly timesInMicros: boolean;
  /** In lower case. */
  readonly customCommands: readonly string[];
}

export interface RedisAuth {
  /** Empty for the default user alone. */
  readonly username: string;
  /** One or more, any of which will do. */
  readonly passwords: readonly string[];
}

export interface RedisRoute {
  readonly prefix: string;
  readonly removesPrefix: boolean;
  readonly cluster: string;
  /** Of commands that read. */
  readonly readCluster: string;
  readonly mirrors: readonly RedisMirror[];
}

export interface RedisMirror {
  readonly cluster: string;
  /** Null for all. */
  readonly share: RuntimeSetting<Fraction> | null;
  readonly leavesReads: boolean;
}

/** Answers that are late or wrong on purpose. */
export interface RedisFault {
  /** Answered with an error, and sent nowhere. */
  readonly isError: boolean;
  /** By which the answer is held back, whatever it is. */
  readonly delayMs: number;
  /** Of those commands. */
  readonly share: RuntimeSetting<Fraction>;
  /** In lower case; none for all. */
  readonly commands: readonly string[];
}

/** Which servers of a Redis cluster get commands that read. */
export type ReadPolicy = 'primary' | 'prefer-primary' | 'replica' | 'prefer-replica' | 'any';

export interface RedisPoolSettings {
  readonly opTimeoutMs: number;
  readonly usesHashTags: boolean;
  /** 0: what comes in one turn goes out with it. */
  readonly flushBytes: number;
  readonly flushMs: number;
  /** Answers that name another host of the cluster are not the last word. */
  readonly followsRedirections: boolean;
  readonly readPolicy: ReadPolicy;
  /** To one host, by one worker, in a second; 0 for any. */
  readonly maxConnectionsPerSecond: number;
}
