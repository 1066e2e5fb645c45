// What a management server is told of a response that is refused.

/** The log has all of it. */
const LONGEST = 4096;

/** @returns undefined where nothing is refused. */
export function refusalText(refusals: readonly string[]): string | undefined {
  return refusals.length === 0 ? undefined : refusals.join('\n').slice(0, LONGEST);
}
