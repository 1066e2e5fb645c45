// How stats are named, tagged and flushed.

import type { Bootstrap, StatsConfig } from '../proto/generated/messages.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { durationMsOr, valueOr } from '../resources/units.ts';
import { quote } from '../source/node.ts';
import type { BootstrapConfig, FixedStatTag } from './bootstrap-config.ts';

const DEFAULT_FLUSH_INTERVAL_MS = 5000;

type StatsSettings = Pick<
  BootstrapConfig,
  'statsFlushIntervalMs' | 'statsFlushOnAdmin' | 'fixedStatTags' | 'useAllDefaultTags'
>;

export function convertStats(message: Bootstrap, faults: FaultSink): StatsSettings {
  const flushOnAdmin = message.stats_flush_on_admin;
  if (flushOnAdmin && message.stats_flush_interval !== null) {
    faults.error('stats_flush_on_admin', 'is set together with stats_flush_interval; only one of them may be');
  }
  const useAllDefaultTags = valueOr(message.stats_config?.use_all_default_tags, true);
  return {
    statsFlushIntervalMs: flushOnAdmin ? 0 : durationMsOr(message.stats_flush_interval, DEFAULT_FLUSH_INTERVAL_MS),
    statsFlushOnAdmin: flushOnAdmin,
    fixedStatTags: convertTags(message.stats_config, useAllDefaultTags, faults),
    useAllDefaultTags,
  };
}

/** Tags with a fixed value. One with a regular expression is not implemented; the support table says so. */
function convertTags(message: StatsConfig | null, hasAllDefaults: boolean, faults: FaultSink): readonly FixedStatTag[] {
  const tags: FixedStatTag[] = [];
  for (const [index, { tag_name: name, tag_value, fixed_value: value }] of (message?.stats_tags ?? []).entries()) {
    const tagAt = `stats_config.stats_tags[${index}].tag_name`;
    if (tag_value === undefined) warnOfName(tagAt, hasAllDefaults, faults);
    if (tag_value !== 'fixed_value') continue;
    if (name === '') faults.error(tagAt, 'must not be empty for a tag with a fixed value');
    else if (tags.some((tag) => tag.name === name)) faults.error(tagAt, `a second fixed tag is called ${quote(name)}`);
    else tags.push({ name, value });
  }
  return tags;
}

/** A name alone picks one of the built-in tags. */
function warnOfName(at: string, hasAllDefaults: boolean, faults: FaultSink): void {
  if (hasAllDefaults) faults.warning(at, 'adds nothing to use_all_default_tags without a regex or fixed_value');
  else faults.warning(at, 'picking a default tag by name is not supported by this build; it has no effect');
}
