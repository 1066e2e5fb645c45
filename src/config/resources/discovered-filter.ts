// HTTP filters whose configuration comes by discovery: ExtensionConfigSource message → where from and what may come, and what
// comes → settings.

import type { ConfiguredFilter, DiscoveredFilter } from '../../snapshot/index.ts';
import { protoSchema } from '../proto/root.ts';
import { itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import { convertConfigSource } from './config-source.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { Any, ExtensionConfigSource } from './messages.ts';

/** @param name of the filter in its chain, which is that of the resource. @returns undefined where a fault says why. */
export function convertDiscoveredFilter(
  name: string,
  config: ExtensionConfigSource,
  at: string,
  conversion: Conversion,
): DiscoveredFilter | undefined {
  const { faults, isOutbound = false } = conversion;
  const { config_source, default_config, apply_default_config_without_warming: beginsWithDefault } = config;
  if (name === '') faults.error(at, 'needs a name beside it, by which the configuration is asked for');
  if (config_source === null) faults.error(`${at}.config_source`, 'is required');
  const source = config_source && convertConfigSource(config_source, `${at}.config_source`, conversion);
  if (source?.resourceGeneration === 'v2')
    faults.error(`${at}.config_source.resource_api_version`, 'V2 has no such resources; use V3');
  const types = config.type_urls.flatMap((url, index) => typeOf(url, itemPath(`${at}.type_urls`, index), conversion));
  if (beginsWithDefault && default_config === null)
    faults.error(`${at}.apply_default_config_without_warming`, 'needs default_config');
  const byDefault =
    default_config && convertConfigured(default_config, `${at}.default_config`, name, types, conversion);
  if (!source || name === '' || types.length === 0) return undefined;
  return { source, types, ...(byDefault && { byDefault }), beginsWithDefault, isOutbound };
}

/**
 * @param at path of the configuration. @param types full names of the messages that it may be.
 * @returns undefined where a fault says why.
 */
export function convertConfigured(
  any: Any | null,
  at: string,
  name: string,
  types: readonly string[],
  conversion: Conversion,
): ConfiguredFilter | undefined {
  const opened = openExtension(any);
  const manifest = opened && conversion.httpFilters?.[opened.typeName];
  // What this build lacks the support table has reported.
  if (manifest === undefined) return undefined;
  if (!types.includes(opened!.typeName)) {
    conversion.faults.error(at, `${quote(any!.type_url)} is not among type_urls`);
    return undefined;
  }
  const settings = manifest.convert(opened!.message, at, conversion, name);
  if (settings === undefined) return undefined;
  const filter = { ...settings, configName: name };
  return manifest.ofRoutes === undefined ? { filter } : { filter, routeType: manifest.ofRoutes.type };
}

function typeOf(url: string, at: string, { faults, httpFilters = {} }: Conversion): readonly string[] {
  const type = protoSchema().find(url)?.type.fullName.slice(1);
  if (type !== undefined && Object.hasOwn(httpFilters, type)) return [type];
  faults.error(at, `${quote(url)} configures no HTTP filter of this build`);
  return [];
}
