// Extensions that an operator has forbidden with --disable-extensions: they stay in the program, and no configuration may
// use them, by name, by type, or by leaving a field at what stands for them.

import {
  EXTENSION_CATEGORIES,
  type Extension,
  type ExtensionCategory,
  type ExtensionPlace,
  findExtension,
} from '../proto/extensions.ts';
import { normalizeTypeName } from '../proto/message-names.ts';

const NO_SETTINGS: ReadonlySet<string> = new Set(['none', 'undescribed']);

export class DisabledExtensions {
  readonly #extensions: readonly Extension[];

  constructor(extensions: readonly Extension[]) {
    this.#extensions = extensions;
  }

  get isEmpty(): boolean {
    return this.#extensions.length === 0;
  }

  /** @param name in any spelling. */
  hasName(category: ExtensionCategory, name: string): boolean {
    const found = findExtension(category, name);
    return found !== undefined && this.#extensions.includes(found);
  }

  /**
   * @param typeName full name of the message of its settings.
   * @param place where they stand; any where nothing is known of it.
   */
  hasType(typeName: string, place: ExtensionPlace | undefined): boolean {
    return this.#extensions.some(
      ({ config, perRouteConfig, category }) =>
        (place === undefined || place.category === category) &&
        typeName === (place?.isPerRoute === true ? perRouteConfig : config) &&
        !NO_SETTINGS.has(config),
    );
  }
}

export const NONE_DISABLED = new DisabledExtensions([]);

/** What an operator reads of one that is used. */
export const IS_DISABLED = 'is disabled by --disable-extensions';

export type NamedForDisabling =
  | { readonly name: string; readonly extension: Extension }
  /** Not `category/name`. */
  | { readonly name: string; readonly fault: 'invalid' }
  | { readonly name: string; readonly fault: 'unknown' };

/**
 * Reads one name of the list, `envoy.filters.http/envoy.filters.http.tap`; `envoy.` and `proxy.` may be left out.
 * @param isLinked whether the build has the extension.
 */
export function readDisabledName(name: string, isLinked: (extension: Extension) => boolean): NamedForDisabling {
  const slash = name.indexOf('/');
  if (slash === -1) return { name, fault: 'invalid' };
  const category = normalizeTypeName(name.slice(0, slash)).replace(/^proxy\./, '');
  const own = name.slice(slash + 1);
  if (!isCategory(category)) return { name, fault: 'unknown' };
  const extension = findExtension(category, own) ?? findExtension(category, `proxy.${own}`);
  return extension !== undefined && isLinked(extension) ? { name, extension } : { name, fault: 'unknown' };
}

function isCategory(name: string): name is ExtensionCategory {
  return (EXTENSION_CATEGORIES as readonly string[]).includes(name);
}
