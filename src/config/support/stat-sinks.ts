// The rows of stat sinks stand beside the sinks; here they join the table.

import type { StatSinkManifests } from '../resources/stat-sink.ts';
import { SUPPORT } from './table/index.ts';
import type { ExtensionVerdict, SupportTable } from './verdict.ts';

const HOLDER = 'proxy.config.metrics.v3.StatsSink';

export function supportWith(sinks: StatSinkManifests): SupportTable {
  const { otherwise, fields } = SUPPORT[HOLDER]!;
  const own = fields.typed_config as ExtensionVerdict;
  const rows = Object.values(sinks).map(({ support }) => support);
  return {
    ...SUPPORT,
    [HOLDER]: {
      otherwise,
      fields: { ...fields, typed_config: { ...own, types: Object.keys(sinks) } },
    },
    ...Object.assign({}, ...rows),
  };
}
