// DynamicResources message → where clusters and listeners come from while the proxy runs.

import type { ConfigSourceSettings } from '../../snapshot/index.ts';
import type { Bootstrap } from '../proto/generated/messages.ts';
import { convertConfigSource } from '../resources/config-source.ts';

export interface DynamicResourcesSettings {
  /** Undefined where all are in the bootstrap. */
  readonly clusters: ConfigSourceSettings | undefined;
  readonly listeners: ConfigSourceSettings | undefined;
}

/** The support table has refused sources that this build does not have. */
export function convertDynamicResources({ dynamic_resources: message }: Bootstrap): DynamicResourcesSettings {
  const { cds_config: clusters = null, lds_config: listeners = null } = message ?? {};
  return {
    clusters: clusters === null ? undefined : convertConfigSource(clusters),
    listeners: listeners === null ? undefined : convertConfigSource(listeners),
  };
}

export function discoversClusters({ dynamic_resources: message }: Bootstrap): boolean {
  return (message?.cds_config ?? null) !== null;
}
