// "Did you mean": the known name closest to a misspelt one. Cold path, only run to explain a fault.

/** Longer names are not compared: no operator mistypes them into one another. */
const MAX_LENGTH = 100;

/**
 * The candidate that `name` was most likely meant to be, or undefined when none is near: at most a third of
 * its characters may differ, or it is the only candidate that goes on after `name`. Case and the choice
 * between `-`, `_` and nothing do not count as differences.
 */
export function nearestName(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > MAX_LENGTH) return undefined;
  const wanted = normalise(name);
  const completion = onlyCompletion(wanted, candidates);
  if (completion !== undefined) return completion;
  let best: string | undefined;
  let bestDistance = Math.floor(Math.max(wanted.length, 3) / 3) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > MAX_LENGTH) continue;
    const distance = editDistance(wanted, normalise(candidate), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Shorter than this, too many names start alike. */
const MIN_PREFIX_LENGTH = 3;

/** The one candidate that starts with what was written: `ring` for `ring_hash`. */
function onlyCompletion(wanted: string, candidates: readonly string[]): string | undefined {
  if (wanted.length < MIN_PREFIX_LENGTH) return undefined;
  const completions = candidates.filter((candidate) => normalise(candidate).startsWith(wanted));
  return completions.length === 1 ? completions[0] : undefined;
}

function normalise(name: string): string {
  return name.toLowerCase().replace(/[-_]/g, '');
}

/**
 * Optimal string alignment distance: insertions, deletions, replacements and swaps of neighbours, each 1.
 * Gives up with `limit` as soon as the result cannot be below it.
 */
export function editDistance(a: string, b: string, limit: number = Number.POSITIVE_INFINITY): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let cost = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) cost = Math.min(cost, beforeLast[j - 2]! + 1);
      row.push(cost);
    }
    if (Math.min(...row) >= limit) return limit;
    beforeLast = last;
    last = row;
  }
  return Math.min(last[b.length]!, limit);
}
