// The TLS contexts of a cluster by place: that of the cluster itself, then those of its transport socket matches.

import type { ClusterSettings } from './cluster.ts';
import type { PackedTls } from './packed-tls.ts';
import type { UpstreamTlsSettings } from './tls.ts';

type WithContexts = Pick<ClusterSettings, 'tls' | 'transportSocketMatches'>;

/** How connections are secured from now on that go by one of the contexts. */
export interface SecuredTransport {
  /** Its place. */
  readonly index: number;
  readonly tls: PackedTls;
}

/** Undefined where connections are plain. */
export function upstreamContextsOf({
  tls,
  transportSocketMatches = [],
}: WithContexts): readonly (UpstreamTlsSettings | undefined)[] {
  return [tls, ...transportSocketMatches.map((match) => match.tls)];
}

/** @param changed by place; contexts that there are already. @returns the settings with those in their places. */
export function withUpstreamContexts<Settings extends WithContexts>(
  settings: Settings,
  changed: ReadonlyMap<number, UpstreamTlsSettings>,
): Settings {
  const { transportSocketMatches: matches } = settings;
  const own = changed.get(0);
  const changedMatches = matches?.map((match, at) => {
    const tls = changed.get(at + 1);
    return tls === undefined ? match : { ...match, tls };
  });
  return {
    ...settings,
    ...(own && { tls: own }),
    ...(changedMatches && { transportSocketMatches: changedMatches }),
  };
}
