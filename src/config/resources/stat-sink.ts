// StatsSink messages → settings of stat sinks. What each sink makes of its own message is in its extension's folder.

import type { SupportTable } from '../support/verdict.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { StatsSink } from './messages.ts';

export interface StatSinkSettings {
  /** `stat_sinks.statsd`. */
  readonly name: string;
  /** As the sink's own conversion has made them. */
  readonly settings: object;
}

/** What an extension says of a stat sink to those who read configurations. */
export interface StatSinkManifest {
  /** As --disable-extensions spells it behind `proxy.`. */
  readonly name: string;
  /** Where it sends what, for the documents; a sentence without its full stop. */
  readonly summary: string;
  /** Rows for its message and for those in it that nothing else leads to. */
  readonly support: SupportTable;
  /** @returns undefined when there are faults. @param at path of its configuration, `stats_sinks[0].typed_config`. */
  readonly convert: (message: object, at: string, conversion: Conversion) => object | undefined;
  /** Why there can be one of it only; absent where there may be several. */
  readonly isAlone?: string;
}

/** By the full name of the message that configures the sink. */
export type StatSinkManifests = Readonly<Record<string, StatSinkManifest>>;

/** Sinks with faults are left out; there is at least one error then. */
export function convertStatSinks(
  messages: readonly StatsSink[],
  manifests: StatSinkManifests,
  conversion: Conversion,
): readonly StatSinkSettings[] {
  const alone = new Set<StatSinkManifest>();
  return messages.flatMap((message, index) => {
    const at = `stats_sinks[${index}]`;
    const opened = openExtension(message.typed_config);
    const manifest = opened && manifests[opened.typeName];
    // What this build lacks has been refused by the support table.
    if (manifest === undefined) return [];
    if (alone.has(manifest)) {
      conversion.faults.error(at, `is a second sink of its kind; ${manifest.isAlone}`);
      return [];
    }
    if (manifest.isAlone !== undefined) alone.add(manifest);
    const settings = manifest.convert(opened!.message, `${at}.typed_config`, conversion);
    return settings === undefined ? [] : [{ name: manifest.name, settings }];
  });
}
