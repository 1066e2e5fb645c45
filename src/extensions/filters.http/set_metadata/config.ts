// Config message → settings of the set_metadata filter.

import {
  type Conversion,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  structToJson,
  supported,
  supportedWhole,
} from '../../../config/index.ts';
import type { MetadataEntry, SetMetadataSettings } from './settings.ts';

const CONFIG = 'proxy.extensions.filters.http.set_metadata.v3.Config';
const DENIED = 'set_metadata.overwrite_denied';

type ConfigMessage = MessageTypes[typeof CONFIG];

export const SET_METADATA: HttpFilterManifest = {
  support: {
    [CONFIG]: {
      otherwise: rejected(),
      fields: { metadata_namespace: supported(), value: supportedWhole(), metadata: supported() },
    },
    'proxy.extensions.filters.http.set_metadata.v3.Metadata': {
      otherwise: rejected('nothing here reads metadata with types: say value'),
      fields: { metadata_namespace: supported(), allow_overwrite: supported(), value: supportedWhole() },
    },
  },
  convert(message, at, conversion) {
    const settings: SetMetadataSettings = {
      entries: entriesOf(message as ConfigMessage, at, conversion),
      deniedCounter: DENIED,
    };
    return { name: 'filters.http.set_metadata', settings, counters: [DENIED] };
  },
};

function entriesOf(message: ConfigMessage, at: string, { faults }: Conversion): readonly MetadataEntry[] {
  const { metadata_namespace: namespace, value, metadata } = message;
  const entries: MetadataEntry[] = [];
  if (value !== null) {
    if (namespace === '') faults.error(`${at}.metadata_namespace`, 'is empty');
    entries.push({ namespace, values: structToJson(value), isMerged: true });
  }
  for (const [index, entry] of metadata.entries()) {
    if (entry.value === null) {
      faults.error(`${at}.metadata[${index}].value`, 'must be set');
      continue;
    }
    const values = structToJson(entry.value);
    entries.push({ namespace: entry.metadata_namespace, values, isMerged: entry.allow_overwrite });
  }
  return entries;
}
