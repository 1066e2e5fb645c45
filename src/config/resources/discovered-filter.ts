// HTTP, network and listener filters whose configuration comes by discovery: ExtensionConfigSource message → where from and what may come, and
// what comes → settings.

import type { ConfiguredFilter, ConfiguredNetworkFilter, DiscoveredFilter } from '../../snapshot/index.ts';
import { protoSchema } from '../proto/root.ts';
import { itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import { LISTENER_FILTER_TYPES, TERMINAL_TYPES } from '../support/table/extensions.ts';
import { convertConfigSource } from './config-source.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { Any, ExtensionConfigSource } from './messages.ts';

/** How filters of one kind are read. */
export interface FilterReading<Configured> {
  /** @param typeName of a message. @returns undefined where it may configure one, else why it cannot. */
  refuse(typeName: string, conversion: Conversion): string | undefined;
  /**
   * @param typeName of the message, which is one of those that may configure it. @param name of the filter.
   * @returns undefined where a fault says why.
   */
  convert(typeName: string, message: object, at: string, name: string, conversion: Conversion): Configured | undefined;
}

export const HTTP_FILTERS: FilterReading<ConfiguredFilter> = {
  refuse: (typeName, { httpFilters = {} }) =>
    Object.hasOwn(httpFilters, typeName) ? undefined : 'configures no HTTP filter of this build',
  convert: (typeName, message, at, name, conversion) => {
    const manifest = conversion.httpFilters![typeName]!;
    const settings = manifest.convert(message, at, conversion, name);
    if (settings === undefined) return undefined;
    const filter = { ...settings, configName: name };
    return manifest.ofRoutes === undefined ? { filter } : { filter, routeType: manifest.ofRoutes.type };
  },
};

export const NETWORK_FILTERS: FilterReading<ConfiguredNetworkFilter> = {
  refuse: (typeName, { networkFilters = {} }) => {
    const manifest = Object.hasOwn(networkFilters, typeName) ? networkFilters[typeName] : undefined;
    if (manifest === undefined) return 'configures no network filter of this build that stands before another';
    return manifest.isTerminal ? 'configures a filter that ends its chain, and others stand behind it here' : undefined;
  },
  convert: (typeName, message, at, _name, conversion) => {
    const settings = conversion.networkFilters![typeName]!.convert(message, at, conversion);
    if (settings === undefined) return undefined;
    return { filter: settings === 'off' ? null : settings };
  },
};

/** @param name of the filter in its chain, which is that of the resource. @returns undefined where a fault says why. */
export function convertDiscoveredFilter<Configured>(
  name: string,
  config: ExtensionConfigSource,
  at: string,
  conversion: Conversion,
  reading: FilterReading<Configured>,
): DiscoveredFilter<Configured> | undefined {
  const { faults, isOutbound = false } = conversion;
  const { config_source, default_config, apply_default_config_without_warming: beginsWithDefault } = config;
  if (name === '') faults.error(at, 'needs a name beside it, by which the configuration is asked for');
  if (config_source === null) faults.error(`${at}.config_source`, 'is required');
  const source = config_source && convertConfigSource(config_source, `${at}.config_source`, conversion);
  if (source?.resourceGeneration === 'v2')
    faults.error(`${at}.config_source.resource_api_version`, 'V2 has no such resources; use V3');
  const types = config.type_urls.flatMap((url, index) =>
    typeOf(url, itemPath(`${at}.type_urls`, index), conversion, reading),
  );
  if (beginsWithDefault && default_config === null)
    faults.error(`${at}.apply_default_config_without_warming`, 'needs default_config');
  const byDefault =
    default_config && convertConfigured(default_config, `${at}.default_config`, name, types, conversion, reading);
  if (!source || name === '' || types.length === 0) return undefined;
  return { source, types, ...(byDefault && { byDefault }), beginsWithDefault, isOutbound };
}

/**
 * @param at path of the configuration. @param types full names of the messages that it may be.
 * @returns undefined where a fault says why.
 */
export function convertConfigured<Configured>(
  any: Any | null,
  at: string,
  name: string,
  types: readonly string[],
  conversion: Conversion,
  reading: FilterReading<Configured>,
): Configured | undefined {
  const opened = openExtension(any);
  // What this build lacks the support table has reported.
  if (opened === undefined || !isFilter(opened.typeName, conversion)) return undefined;
  if (!types.includes(opened.typeName)) {
    conversion.faults.error(at, `${quote(any!.type_url)} is not among type_urls`);
    return undefined;
  }
  return reading.convert(opened.typeName, opened.message, at, name, conversion);
}

/** Of whatever kind. */
function isFilter(typeName: string, { httpFilters = {}, networkFilters = {} }: Conversion): boolean {
  const isExtension = Object.hasOwn(httpFilters, typeName) || Object.hasOwn(networkFilters, typeName);
  return isExtension || TERMINAL_TYPES.includes(typeName) || LISTENER_FILTER_TYPES.includes(typeName);
}

function typeOf(
  url: string,
  at: string,
  conversion: Conversion,
  { refuse }: Pick<FilterReading<unknown>, 'refuse'>,
): readonly string[] {
  const type = protoSchema().find(url)?.type.fullName.slice(1) ?? '';
  const refusal = refuse(type, conversion);
  if (refusal === undefined) return [type];
  conversion.faults.error(at, `${quote(url)} ${refusal}`);
  return [];
}
