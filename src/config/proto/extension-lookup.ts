// Which message an extension's name stands for at a certain place of the configuration: what the reader asks
// when a configuration does not name its own type.

import { extensionPlace, extensionsOf, findExtension } from './extensions.ts';
import { findLacking } from './lacking-extensions.ts';
import { envoySpelling, type Generation } from './message-names.ts';
import type { MessageReference, ProtoSchema } from './root.ts';

/** The field that an extension is configured in. */
export interface ExtensionSlot {
  /** Full name of the message that has the field. */
  readonly holder: string;
  /** `typed_config`, or one of the per-name maps such as `typed_per_filter_config`. */
  readonly field: string;
  /** Inside a cluster: decides which of two messages a TLS transport socket means. */
  readonly isUpstream: boolean;
  /**
   * One of a list of which the first that this build has counts: one that nobody knows makes room for the next. Or one in a field that is
   * left out whatever it holds.
   */
  readonly isChoice: boolean;
  /** The field around it is refused whatever it holds, with a reason of its own. */
  readonly isRefused: boolean;
  /** `is_optional`: one that nobody knows is left out. */
  readonly isOptional: boolean;
}

export interface NamedExtension extends MessageReference {
  /** Type URL under which the configuration is kept once it is read. */
  readonly typeUrl: string;
}

/**
 * `unknown`: the place's extensions are listed and this name is none of them. `open`: the name cannot be
 * judged here, or is known but stands for no message; what was written is kept as it is.
 */
export type ExtensionLookup = NamedExtension | 'unknown' | 'open';

/** Older field → the field that took over from it. Both map extension names to configurations. */
export const TYPED_MAPS: Readonly<Record<string, string>> = {
  per_filter_config: 'typed_per_filter_config',
  extension_protocol_options: 'typed_extension_protocol_options',
};
export const TYPED_MAP_NAMES: ReadonlySet<string> = new Set(Object.values(TYPED_MAPS));

const TYPE_URL_HOST = 'type.googleapis.com';

/** @param generation of the configuration that is to be read: opaque ones were only written in v2. */
export function lookUpExtension(
  schema: ProtoSchema,
  slot: ExtensionSlot,
  name: string,
  generation: Generation,
): ExtensionLookup {
  const place = extensionPlace(slot.holder, slot.field, slot.isUpstream);
  if (place === undefined) return 'open';
  const extension = findExtension(place.category, name);
  if (extension === undefined) return slot.isOptional ? 'open' : 'unknown';
  const config = place.isPerRoute ? extension.perRouteConfig : extension.config;
  const found = schema.find(config);
  if (found === undefined) return 'open';
  return { type: found.type, generation, typeUrl: `${TYPE_URL_HOST}/${envoySpelling(config)}` };
}

/**
 * Whether a configuration without a message in our schema may stand here; others say more about it.
 * @param name beside it; undefined where it has none.
 */
export function mayBeUnknown(slot: ExtensionSlot, name: string | undefined, typeUrl: string): boolean {
  if (slot.isOptional) return true;
  if (name === undefined) return false;
  if (slot.isChoice) return true;
  // What is known of the extension itself says more still.
  if (slot.isRefused && findLacking(typeUrl) === undefined) return true;
  const place = extensionPlace(slot.holder, slot.field, slot.isUpstream);
  if (place === undefined) return false;
  const lacking = findLacking(typeUrl)?.names[0] ?? '';
  return [name, `proxy.${lacking}`].some((each) => findExtension(place.category, each)?.config === 'undescribed');
}

/** Names to suggest in place of an unknown one, in the spelling that the unknown one uses. */
export function extensionNamesFor(slot: ExtensionSlot, unknown: string): string[] {
  const place = extensionPlace(slot.holder, slot.field, slot.isUpstream);
  if (place === undefined) return [];
  const names = extensionsOf(place.category).flatMap((extension) => extension.names);
  return unknown.startsWith('envoy.') ? names.map(envoySpelling) : names;
}
