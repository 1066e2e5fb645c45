// Decision trees that choose filter chains, as configurations have them.

import type { Json, JsonObject } from './bootstrap.ts';

const TYPES = 'type.googleapis.com/';
const NETWORK = 'envoy.extensions.matching.common_inputs.network.v3';

/** @param name of the message, `SourceIPInput`. */
export function networkInput(name: string): JsonObject {
  return { name, typed_config: { '@type': `${TYPES}${NETWORK}.${name}` } };
}

/** Leads to the chain of this name. */
export function toChain(value: string): JsonObject {
  return { action: { name: value, typed_config: { '@type': `${TYPES}google.protobuf.StringValue`, value } } };
}

/** Leads to the chain that the format makes the name of. */
export function toFormattedChain(fields: JsonObject): JsonObject {
  const type = `${TYPES}envoy.config.core.v3.SubstitutionFormatString`;
  return { action: { name: 'format', typed_config: { '@type': type, ...fields } } };
}

/** What an exact value of an input leads to. */
export function byValue(input: string, map: Readonly<Record<string, JsonObject>>): JsonObject {
  return { matcher_tree: { input: networkInput(input), exact_match_map: { map } } };
}

/** Chains by ranges, `10.0.0.0/8`. */
export function bySource(ranges: Readonly<Record<string, JsonObject>>): JsonObject {
  const range_matchers = Object.entries(ranges).map(([range, on_match]) => {
    const [address_prefix, prefix_len] = range.split('/');
    return { ranges: [{ address_prefix: address_prefix!, prefix_len: Number(prefix_len) }], on_match };
  });
  const typed_config: Json = { '@type': `${TYPES}xds.type.matcher.v3.IPMatcher`, range_matchers };
  return { matcher_tree: { input: networkInput('SourceIPInput'), custom_match: { name: 'ip', typed_config } } };
}

/** Chains by server names, of which `*.example.com` stands for many. */
export function byServerName(names: Readonly<Record<string, JsonObject>>): JsonObject {
  const domain_matchers = Object.entries(names).map(([domain, on_match]) => ({ domains: [domain], on_match }));
  const typed_config: Json = { '@type': `${TYPES}xds.type.matcher.v3.ServerNameMatcher`, domain_matchers };
  return { matcher_tree: { input: networkInput('ServerNameInput'), custom_match: { name: 'names', typed_config } } };
}
