// Response flags: what went wrong with a request or a connection, one bit each, so that several can be noted
// without a list. They are written in the order of this table.

const FLAGS = [
  ['LH', 'FailedLocalHealthCheck'],
  ['UH', 'NoHealthyUpstream'],
  ['UT', 'UpstreamRequestTimeout'],
  ['LR', 'LocalReset'],
  ['UR', 'UpstreamRemoteReset'],
  ['UF', 'UpstreamConnectionFailure'],
  ['UC', 'UpstreamConnectionTermination'],
  ['UO', 'UpstreamOverflow'],
  ['NR', 'NoRouteFound'],
  ['DI', 'DelayInjected'],
  ['FI', 'FaultInjected'],
  ['RL', 'RateLimited'],
  ['UAEX', 'UnauthorizedExternalService'],
  ['RLSE', 'RateLimitServiceError'],
  ['DC', 'DownstreamConnectionTermination'],
  ['URX', 'UpstreamRetryLimitExceeded'],
  ['SI', 'StreamIdleTimeout'],
  ['IH', 'InvalidEnvoyRequestHeaders'],
  ['DPE', 'DownstreamProtocolError'],
  ['UMSDR', 'UpstreamMaxStreamDurationReached'],
  ['RFCF', 'ResponseFromCacheFilter'],
  ['NFCF', 'NoFilterConfigFound'],
  ['DT', 'DurationTimeout'],
  ['UPE', 'UpstreamProtocolError'],
  ['NC', 'NoClusterFound'],
  ['OM', 'OverloadManagerTerminated'],
  ['DF', 'DnsResolutionFailed'],
  ['DO', 'DropOverload'],
] as const;

/** Short name of a response flag. */
export type ResponseFlagName = (typeof FLAGS)[number][0];

/** Bit of each flag by its short name. */
export const ResponseFlag = Object.fromEntries(FLAGS.map(([name], index) => [name, 1 << index])) as Readonly<
  Record<ResponseFlagName, number>
>;

export const NO_FLAGS = 0;

/** Short names joined by commas, or empty text. */
export function shortFlags(flags: number): string {
  return join(flags, 0);
}

/** The same with the long names. */
export function longFlags(flags: number): string {
  return join(flags, 1);
}

/** Bit of one flag, 0 for `-`. */
export function flagBit(name: ResponseFlagName | '-'): number {
  return name === '-' ? NO_FLAGS : ResponseFlag[name];
}

/** Bits of flags by their short names; unknown names stand for flags that this build never sets. */
export function flagBits(names: readonly string[]): number {
  return names.reduce((bits, name) => bits | (ResponseFlag[name as ResponseFlagName] ?? 0), 0);
}

function join(flags: number, form: 0 | 1): string {
  if (flags === NO_FLAGS) return '';
  return FLAGS.filter((_, index) => (flags & (1 << index)) !== 0)
    .map((names) => names[form])
    .join(',');
}

/** Places in the table, from 1, of the flags that are set. */
export function flagNumbers(flags: number): readonly number[] {
  return FLAGS.flatMap((_, index) => ((flags & (1 << index)) !== 0 ? [index + 1] : []));
}
