// The extensions of this build, out of the support table.

import { EXTENSIONS } from '../proto/extension-table.ts';
import { type Extension, type ExtensionCategory, extensionsOf } from '../proto/extensions.ts';
import type { StatSinkManifests } from '../resources/stat-sink.ts';
import { supportWith } from './stat-sinks.ts';

export interface LinkedExtension {
  /** `proxy.filters.http.router`. */
  readonly name: string;
  /** `proxy.filters.http`. */
  readonly category: string;
}

/** By category, then as extension-table.ts has them. */
export function linkedExtensions(sinks: StatSinkManifests): LinkedExtension[] {
  const types = new Set<string>();
  const names = new Set<string>();
  for (const verdict of Object.values(supportWith(sinks)).flatMap(({ fields }) => Object.values(fields))) {
    if (verdict.kind !== 'extension') continue;
    for (const type of verdict.types) types.add(type);
    for (const name of verdict.names) names.add(`proxy.${name}`);
  }
  const isLinked = ({ config, names: own }: Extension): boolean =>
    types.has(config) || own.some((name) => names.has(name));
  const categories = Object.keys(EXTENSIONS) as ExtensionCategory[];
  return categories.flatMap((category) =>
    extensionsOf(category)
      .filter(isLinked)
      .map(({ canonicalName }) => ({ name: canonicalName, category: `proxy.${category}` })),
  );
}
