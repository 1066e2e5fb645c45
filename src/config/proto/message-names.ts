// All spellings of message names. The schema's own are canonical (`proxy.config.cluster.v3.Cluster`); on
// input `envoy.` may stand for the leading `proxy.`, and v2 names (`envoy.api.v2.Cluster`) mean the message
// that took over from them.

export type Generation = 'v2' | 'v3';

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
