// Features of this build that runtime values turn on and off: `proxy.reloadable_features.*` at any time, `proxy.restart_features.*`
// for the whole life of the process, from what the bootstrap itself says. Any thread.

import { APPLE_DNS_LOOKUPS, runtimeKey, STATS_FILTER_BY_RE2 } from './runtime-values.ts';

/** By the keys of their values: whether they are on where no layer says anything. */
export const FEATURE_GUARDS = {
  [STATS_FILTER_BY_RE2]: true,
  [APPLE_DNS_LOOKUPS]: false,
} as const satisfies Readonly<Record<string, boolean>>;
export type FeatureGuard = keyof typeof FEATURE_GUARDS;

const RELOADABLE = 'proxy.reloadable_features.';
const AT_RESTARTS = 'proxy.restart_features.';

/** Why a value that has come while the proxy runs guards nothing, in words that go on behind the key; undefined where it does. */
export function guardFault(key: string): string | undefined {
  const canonical = runtimeKey(key);
  const isReloadable = canonical.startsWith(RELOADABLE);
  if (!isReloadable && !canonical.startsWith(AT_RESTARTS)) return undefined;
  if (!Object.hasOwn(FEATURE_GUARDS, canonical)) return 'is no feature of this build';
  return isReloadable ? undefined : 'counts only in a layer of the bootstrap, at the start';
}
