// typed_per_filter_config → what a table, its virtual hosts and routes say to the filters that their requests meet.

import type { FiltersOfRoute, NamedFilter, RouteFilterSettings } from '../../snapshot/index.ts';
import { extensionsOf, findExtension } from '../proto/extensions.ts';
import { quote } from '../source/node.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { HttpFilterManifest, HttpFilterManifests, RouteFilterManifest } from './http-filter.ts';
import type { Any, HttpFilter, RouteFilterConfig } from './messages.ts';

const FILTER_CONFIG = 'proxy.config.route.v3.FilterConfig';

type OlderFields = Readonly<Record<NonNullable<RouteFilterManifest['olderField']>['name'], object | null>>;

/** Whom routes may speak to of the filters of a connection manager, of whatever chain. */
export function namedFilters(filters: readonly HttpFilter[]): readonly NamedFilter[] {
  return filters.map(({ name, typed_config }) => ({ name, type: openExtension(typed_config)?.typeName }));
}

/** The filters of all chains of a connection manager. */
export class RouteFilters {
  readonly #filters: readonly NamedFilter[];
  readonly #conversion: Conversion;
  readonly #byRouteType: ReadonlyMap<string, HttpFilterManifest>;

  constructor(filters: readonly NamedFilter[], conversion: Conversion) {
    this.#conversion = conversion;
    this.#filters = filters;
    const manifests = Object.values<HttpFilterManifest>(conversion.httpFilters ?? {});
    this.#byRouteType = new Map(
      manifests.flatMap((manifest) => (manifest.ofRoutes === undefined ? [] : [[manifest.ofRoutes.type, manifest]])),
    );
  }

  /**
   * @param at path of the map. @param outer what the level around says.
   * @param older what has the fields from before the map, with its path.
   * @returns the same as `outer`, where this level adds nothing.
   */
  convert(
    entries: Readonly<Record<string, Any>>,
    at: string,
    outer: FiltersOfRoute | null,
    older: { readonly fields: OlderFields | null; readonly at: string },
  ): FiltersOfRoute | null {
    const own = new Map<string, RouteFilterSettings>();
    if (older.fields !== null) this.#convertOlder(older.fields, older.at, own);
    for (const [key, any] of Object.entries(entries)) {
      const here = `${at}["${key}"]`;
      const named = this.#named(key);
      if (named.length === 0) this.#warnOfNobody(here, `is called ${quote(key)}`);
      const settings = this.#convertEntry(any, named, here);
      if (settings !== undefined) for (const { name } of named) own.set(name, settings);
    }
    if (own.size === 0) return outer;
    const all = new Map(outer);
    for (const [name, settings] of own) all.set(name, [settings, ...(outer?.get(name) ?? [])]);
    return all;
  }

  #convertOlder(fields: OlderFields, at: string, own: Map<string, RouteFilterSettings>): void {
    for (const [type, { ofRoutes }] of Object.entries(this.#conversion.httpFilters ?? {})) {
      const field = ofRoutes?.olderField;
      const message = field && fields[field.name];
      if (!message) continue;
      const here = `${at}.${field.name}`;
      const named = this.#filters.filter((filter) => filter.type === type);
      if (named.length === 0) this.#warnOfNobody(here, 'reads it');
      const settings = field.convert(message, here, this.#conversion);
      if (settings !== undefined) for (const { name } of named) own.set(name, levelOf(settings, false, ofRoutes!));
    }
  }

  #warnOfNobody(at: string, what: string): void {
    this.#conversion.faults.warning(at, `no filter of this connection manager ${what}; it has no effect`);
  }

  /** By their names in the chain; else those that are of the extension with that name, which older configurations write. */
  #named(key: string): readonly NamedFilter[] {
    const exact = this.#filters.filter(({ name }) => name === key);
    if (exact.length > 0) return exact;
    const extension = findExtension('filters.http', key);
    return extension === undefined ? [] : this.#filters.filter(({ type }) => type === extension.config);
  }

  /** @returns undefined for what this build lacks or has faults. */
  #convertEntry(any: Any, named: readonly NamedFilter[], at: string): RouteFilterSettings | undefined {
    const opened = openExtension(any);
    if (opened?.typeName !== FILTER_CONFIG) return this.#convertSettings(any, named, at, false);
    const { config, disabled } = opened.message as RouteFilterConfig;
    // Empty settings are how control planes say that a filter, disabled in its chain, is to run.
    if (config === null || config.type_url === '') return { isDisabled: disabled };
    return this.#convertSettings(config, named, `${at}.config`, disabled);
  }

  #convertSettings(
    any: Any,
    named: readonly NamedFilter[],
    at: string,
    isDisabled: boolean,
  ): RouteFilterSettings | undefined {
    const { faults } = this.#conversion;
    const opened = openExtension(any);
    const ofRoutes = opened && this.#byRouteType.get(opened.typeName)?.ofRoutes;
    // What this build lacks the support table has reported.
    if (ofRoutes === undefined) return undefined;
    const stranger = named.find(
      ({ type }) => type !== undefined && ofRoutesOf(type, this.#conversion.httpFilters) !== ofRoutes,
    );
    if (stranger !== undefined) {
      const extension = extensionsOf('filters.http').find(({ config }) => config === stranger.type);
      const kind = extension?.canonicalName ?? stranger.type!;
      faults.error(at, `${quote(stranger.name)} is ${quote(kind)}, which takes no settings of this type`);
      return undefined;
    }
    const settings = ofRoutes.convert(opened!.message, at, this.#conversion);
    const level = settings && levelOf(settings, isDisabled, ofRoutes);
    // Of a filter that comes by discovery nobody knows yet what it will be.
    const isKnown = named.every(({ type }) => type !== undefined);
    return level?.settings === undefined || isKnown ? level : { ...level, type: ofRoutes.type };
  }
}

function levelOf(
  settings: object | 'off',
  isDisabled: boolean,
  { wholeStats }: RouteFilterManifest,
): RouteFilterSettings {
  if (settings === 'off') return { isDisabled: true };
  return { isDisabled, settings, ...wholeStats?.(settings) };
}

function ofRoutesOf(type: string, manifests: HttpFilterManifests | undefined): HttpFilterManifest['ofRoutes'] {
  return manifests?.[type]?.ofRoutes;
}
