// All spellings of message names. The schema's own are canonical (`proxy.config.cluster.v3.Cluster`); on
// input `envoy.` may stand for the leading `proxy.`, and v2 names (`envoy.api.v2.Cluster`) mean the message
// that took over from them.

export type Generation = 'v2' | 'v3';

const FORMER: ReadonlyMap<string, string> = new Map([
  ['proxy.config.filter.http.ext_authz.v2alpha.ExtAuthz', 'proxy.config.filter.http.ext_authz.v2.ExtAuthz'],
  ...['proxy.source.extensions.filters.http.cache', 'proxy.extensions.cache.simple_http_cache.v3'].map(
    (place) =>
      [
        `${place}.SimpleHttpCacheConfig`,
        'proxy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig',
      ] as const,
  ),
]);

/**
 * What took the place of a name that messages had for a while: those of `v3alpha` came as they were into `v3`.
 * @param name as normalizeTypeName has it. @returns the same for any other.
 */
export function currentTypeName(name: string): string {
  const stable = name.replace(/\.v3alpha\./, '.v3.');
  return FORMER.get(stable) ?? stable;
}

/** Takes host, leading dot and the old vendor prefix off a type URL or name. */
export function normalizeTypeName(nameOrTypeUrl: string): string {
  const name = nameOrTypeUrl.slice(nameOrTypeUrl.lastIndexOf('/') + 1);
  const bare = name.startsWith('.') ? name.slice(1) : name;
  return bare.startsWith('envoy.') ? `proxy.${bare.slice('envoy.'.length)}` : bare;
}

/** The name as the older interface spells it, for output in its spelling. */
export function envoySpelling(name: string): string {
  return name.startsWith('proxy.') ? `envoy.${name.slice('proxy.'.length)}` : name;
}
