// The extensions of this build, out of the support table.

import { EXTENSION_CATEGORIES, type Extension, extensionsOf } from '../proto/extensions.ts';
import type { ExtensionManifests } from '../resources/extension-manifests.ts';
import { DisabledExtensions, NONE_DISABLED, readDisabledName } from './disabled-extensions.ts';
import { supportWith } from './extension-rows.ts';

export interface LinkedExtension {
  /** `proxy.filters.http.router`. */
  readonly name: string;
  /** `proxy.filters.http`. */
  readonly category: string;
  /** No configuration may use it. */
  readonly disabled: boolean;
}

/** By category, then as extension-table.ts has them. */
export function linkedExtensions(
  extensions: ExtensionManifests,
  disabled: DisabledExtensions = NONE_DISABLED,
): LinkedExtension[] {
  const isLinked = linkedIn(extensions);
  return EXTENSION_CATEGORIES.flatMap((category) =>
    extensionsOf(category)
      .filter(isLinked)
      .map(({ canonicalName: name }) => ({
        name,
        category: `proxy.${category}`,
        disabled: disabled.hasName(category, name),
      })),
  );
}

export interface DisablingOutcome {
  readonly disabled: DisabledExtensions;
  /** As they were written. */
  readonly done: readonly string[];
  readonly warnings: readonly string[];
}

/** @param names as --disable-extensions has them: `category/name`. */
export function disableExtensions(names: readonly string[], extensions: ExtensionManifests): DisablingOutcome {
  const read = names.length === 0 ? [] : readNames(names, extensions);
  return {
    disabled: new DisabledExtensions(read.flatMap((each) => ('extension' in each ? each.extension : []))),
    done: read.flatMap((each) => ('extension' in each ? each.name : [])),
    warnings: read.flatMap((each) =>
      'fault' in each
        ? `failed to disable ${each.fault} extension ${each.fault === 'invalid' ? 'name ' : ''}'${each.name}'`
        : [],
    ),
  };
}

function readNames(names: readonly string[], extensions: ExtensionManifests) {
  const isLinked = linkedIn(extensions);
  return names.map((name) => readDisabledName(name, isLinked));
}

function linkedIn(extensions: ExtensionManifests): (extension: Extension) => boolean {
  const types = new Set<string>();
  const names = new Set<string>();
  for (const verdict of Object.values(supportWith(extensions)).flatMap(({ fields }) => Object.values(fields))) {
    if (verdict.kind !== 'extension') continue;
    for (const type of verdict.types) types.add(type);
    for (const name of verdict.names) names.add(`proxy.${name}`);
  }
  return ({ config, names: own }) => types.has(config) || own.some((name) => names.has(name));
}
