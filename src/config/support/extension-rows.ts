// The rows of stat sinks and HTTP filters stand beside their extensions; here they join the table.

import type { ExtensionManifests } from '../resources/extension-manifests.ts';
import { SUPPORT } from './table/index.ts';
import type { ExtensionVerdict, MessageSupport, SupportTable } from './verdict.ts';

const STAT_SINK = 'proxy.config.metrics.v3.StatsSink';
const HTTP_FILTER = 'proxy.extensions.filters.network.http_connection_manager.v3.HttpFilter';

export function supportWith({ statSinks, httpFilters }: ExtensionManifests): SupportTable {
  const manifests = [...Object.values(statSinks), ...Object.values(httpFilters)];
  return {
    ...SUPPORT,
    [STAT_SINK]: withTypes(SUPPORT[STAT_SINK]!, Object.keys(statSinks)),
    [HTTP_FILTER]: withTypes(SUPPORT[HTTP_FILTER]!, Object.keys(httpFilters)),
    ...Object.assign({}, ...manifests.map(({ support }) => support)),
  };
}

/** @param types of what `typed_config` may hold beside those that the row itself names. */
function withTypes({ otherwise, fields }: MessageSupport, types: readonly string[]): MessageSupport {
  const own = fields.typed_config as ExtensionVerdict;
  return { otherwise, fields: { ...fields, typed_config: { ...own, types: [...own.types, ...types] } } };
}
