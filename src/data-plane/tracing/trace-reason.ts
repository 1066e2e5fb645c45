// Why a request is traced, as its x-request-id says: the digit that gives a UUID its version is 4 for one that is not, and one
// of three others, so that all proxies that a request passes decide alike.

export type TraceReason = 'none' | 'sampled' | 'forced' | 'client';

const UUID_CHARACTERS = 36;
const AT = 14;
const DIGITS: Readonly<Record<TraceReason, string>> = { none: '4', sampled: '9', forced: 'a', client: 'b' };
const REASONS: ReadonlyMap<string | undefined, TraceReason> = new Map(
  Object.entries(DIGITS).map(([reason, digit]) => [digit, reason as TraceReason]),
);
const START_DIGITS = 8;

/** 'none' also for an identifier of another form. */
export function traceReason(requestId: string | undefined): TraceReason {
  return (requestId?.length === UUID_CHARACTERS && REASONS.get(requestId[AT])) || 'none';
}

/** @returns undefined for an identifier that cannot say it. */
export function withTraceReason(requestId: string | undefined, reason: TraceReason): string | undefined {
  if (requestId?.length !== UUID_CHARACTERS) return undefined;
  return requestId.slice(0, AT) + DIGITS[reason] + requestId.slice(AT + 1);
}

/** A number that all who see the identifier draw alike, 0 to 2^32 - 1; undefined for one of another form. */
export function drawnBy(requestId: string | undefined): number | undefined {
  if (requestId?.length !== UUID_CHARACTERS) return undefined;
  const drawn = Number(`0x${requestId.slice(0, START_DIGITS)}`);
  return Number.isInteger(drawn) ? drawn : undefined;
}
