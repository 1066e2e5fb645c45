// How stats are named, tagged and flushed.

import { DEFAULT_TAG_NAMES } from '../../base/default-stat-tags.ts';
import { compileTagRegex } from '../../base/tag-regex.ts';
import type {
  Bootstrap,
  HistogramBucketSettings,
  StatsConfig,
  StatsMatcher,
  TagSpecifier,
} from '../proto/generated/messages.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { convertStringMatcher } from '../resources/string-match.ts';
import { durationMsOr, valueOr } from '../resources/units.ts';
import { quote } from '../source/node.ts';
import type { BootstrapConfig, BucketSettings, FixedStatTag, StatMatcher, StatTagRule } from './bootstrap-config.ts';

const DEFAULT_FLUSH_INTERVAL_MS = 5000;

/** Bounds that a histogram can have at most. */
const MOST_BOUNDS = 512;

type TagSettings = Pick<BootstrapConfig, 'fixedStatTags' | 'useAllDefaultTags' | 'defaultStatTags' | 'statTagRules'>;

type StatsSettings = TagSettings &
  Pick<
    BootstrapConfig,
    'statsFlushIntervalMs' | 'serverVersion' | 'statsFlushOnAdmin' | 'shownStats' | 'bucketSettings'
  >;

export function convertStats(message: Bootstrap, faults: FaultSink): StatsSettings {
  const flushOnAdmin = message.stats_flush_on_admin;
  if (flushOnAdmin && message.stats_flush_interval !== null) {
    faults.error('stats_flush_on_admin', 'is set together with stats_flush_interval; only one of them may be');
  }
  return {
    statsFlushIntervalMs: flushOnAdmin ? 0 : durationMsOr(message.stats_flush_interval, DEFAULT_FLUSH_INTERVAL_MS),
    statsFlushOnAdmin: flushOnAdmin,
    serverVersion: convertVersion(message, faults),
    ...convertTags(message.stats_config, faults),
    shownStats: convertMatcher(message.stats_config?.stats_matcher ?? null, faults),
    bucketSettings: (message.stats_config?.histogram_bucket_settings ?? []).flatMap((settings, index) =>
      convertBuckets(settings, `stats_config.histogram_bucket_settings[${index}]`, faults),
    ),
  };
}

/** A gauge holds whole numbers up to 2^53. */
function convertVersion({ stats_server_version_override: message }: Bootstrap, faults: FaultSink): number | undefined {
  if (message === null) return undefined;
  const version = int64ToNumber(message.value);
  if (version <= Number.MAX_SAFE_INTEGER) return version;
  faults.error('stats_server_version_override', `${version} exceeds the limit ${Number.MAX_SAFE_INTEGER}`);
  return undefined;
}

function convertTags(message: StatsConfig | null, faults: FaultSink): TagSettings {
  const useAllDefaultTags = valueOr(message?.use_all_default_tags, true);
  const fixed: FixedStatTag[] = [];
  const defaults: string[] = [];
  const rules: StatTagRule[] = [];
  const names = new Set<string>();
  for (const [index, specifier] of (message?.stats_tags ?? []).entries()) {
    const at = `stats_config.stats_tags[${index}]`;
    const name = tagName(specifier);
    if (name === '') faults.error(`${at}.tag_name`, 'must not be empty');
    else if (names.has(name)) faults.error(`${at}.tag_name`, `a second tag is called ${quote(name)}`);
    else if (specifier.tag_value === 'fixed_value') fixed.push({ name, value: specifier.fixed_value });
    else if (specifier.regex !== '') rules.push(...convertRule(name, specifier.regex, `${at}.regex`, faults));
    else if (DEFAULT_TAG_NAMES.includes(name)) {
      if (useAllDefaultTags) faults.warning(`${at}.tag_name`, 'adds nothing to use_all_default_tags');
      defaults.push(name);
    } else
      faults.error(`${at}.tag_name`, `${quote(name)} is no default tag, and has neither a regex nor a fixed_value`);
    names.add(name);
  }
  return { fixedStatTags: fixed, useAllDefaultTags, defaultStatTags: defaults, statTagRules: rules };
}

/** The proxy's own tags have two spellings. */
function tagName({ tag_name: name }: TagSpecifier): string {
  return name.startsWith('envoy.') ? `proxy.${name.slice('envoy.'.length)}` : name;
}

function convertRule(name: string, pattern: string, at: string, faults: FaultSink): readonly StatTagRule[] {
  const { error } = compileTagRegex(pattern);
  if (error !== undefined) faults.error(at, `${quote(pattern)} is not a regular expression: ${error}`);
  else if (!hasGroup(pattern)) faults.error(at, `${quote(pattern)} has no group that says what the tag is`);
  else return [{ name, pattern }];
  return [];
}

/** The empty text is matched by what is added; then the groups are there without anything in them. */
function hasGroup(pattern: string): boolean {
  return compileTagRegex(`${pattern}|`).regex?.exec('')?.length !== 1;
}

function convertMatcher(message: StatsMatcher | null, faults: FaultSink): StatMatcher | undefined {
  const kind = message?.stats_matcher;
  if (message === null || kind === undefined) return undefined;
  if (kind === 'reject_all') return message.reject_all ? { showsMatching: true, patterns: [] } : undefined;
  const at = `stats_config.stats_matcher.${kind}`;
  const patterns = (message[kind]?.patterns ?? []).flatMap(
    (pattern, index) => convertStringMatcher(pattern, `${at}.patterns[${index}]`, faults) ?? [],
  );
  return { showsMatching: kind === 'inclusion_list', patterns };
}

/** That bounds are above 0 and each there once is checked with the schema's rules. */
function convertBuckets(message: HistogramBucketSettings, at: string, faults: FaultSink): readonly BucketSettings[] {
  const match = message.match === null ? undefined : convertStringMatcher(message.match, `${at}.match`, faults);
  const bounds = message.buckets.toSorted((a, b) => a - b);
  if (bounds.length > MOST_BOUNDS) {
    faults.error(`${at}.buckets`, `has ${bounds.length} bounds, at most ${MOST_BOUNDS} are possible`);
  }
  // Settings without bounds are those of `bins` alone.
  return match === undefined || bounds.length === 0 ? [] : [{ match, bounds }];
}
