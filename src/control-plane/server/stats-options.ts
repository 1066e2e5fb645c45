// How the bootstrap has stats named, tagged and shown, as the store of stats takes it. Main thread.

import { compileStringMatch } from '../../base/string-match.ts';
import { compileTagRegex } from '../../base/tag-regex.ts';
import type { BootstrapConfig } from '../../config/index.ts';
import type { StatsStoreOptions, Tag } from '../../stats/index.ts';

/** @param furtherTags of every stat, beside those of the bootstrap. */
export function statsOptions(
  bootstrap: BootstrapConfig,
  furtherTags: readonly Tag[],
): Pick<StatsStoreOptions, 'tags' | 'accepts' | 'bucketBounds'> {
  const { useAllDefaultTags, defaultStatTags: defaultTags, fixedStatTags, statTagRules, shownStats } = bootstrap;
  const own = new Set(furtherTags.map(({ name }) => name));
  const fixedTags = [...fixedStatTags.filter(({ name }) => !own.has(name)), ...furtherTags];
  // The configuration has let no expression through that does not compile.
  const regexTags = statTagRules.map(({ name, pattern }) => ({ name, regex: compileTagRegex(pattern).regex! }));
  return {
    tags: { useAllDefaultTags, defaultTags, fixedTags, regexTags },
    ...(shownStats === undefined ? {} : { accepts: shownStatsTest(shownStats) }),
    ...(bootstrap.bucketSettings.length === 0 ? {} : { bucketBounds: boundsByName(bootstrap.bucketSettings) }),
  };
}

function shownStatsTest({
  showsMatching,
  patterns,
}: NonNullable<BootstrapConfig['shownStats']>): (name: string) => boolean {
  const tests = patterns.map(compileStringMatch);
  return (name) => tests.some((test) => test(name)) === showsMatching;
}

function boundsByName(settings: BootstrapConfig['bucketSettings']): (name: string) => readonly number[] | undefined {
  const tests = settings.map(({ match, bounds }) => ({ test: compileStringMatch(match), bounds }));
  return (name) => tests.find(({ test }) => test(name))?.bounds;
}
