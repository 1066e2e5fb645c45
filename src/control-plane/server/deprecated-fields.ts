// What a bootstrap has of deprecated fields: counted as the peers count it, and said in one line of the log. Main thread.

import type { Logger } from '../../log/index.ts';
import type { StatsStore } from '../../stats/index.ts';

/** @param fields how often each is set, by its name. */
export function noteDeprecatedFields(
  fields: ReadonlyMap<string, number>,
  stats: Pick<StatsStore, 'scope'>,
  log: Pick<Logger, 'info'>,
): void {
  if (fields.size === 0) return;
  const uses = [...fields.values()].reduce((sum, count) => sum + count, 0);
  const scope = stats.scope('runtime.');
  scope.counter('deprecated_feature_use').add(uses);
  scope.gauge('deprecated_feature_seen_since_process_start').add(uses);
  const named = [...fields].map(([name, count]) => (count === 1 ? name : `${name} (${count} times)`));
  log.info(`deprecated fields are in use: ${named.join(', ')}`);
}
