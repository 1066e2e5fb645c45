// DynamicResources message → where clusters and listeners come from while the proxy runs.

import type { ConfigSourceSettings, GrpcSourceSettings } from '../../snapshot/index.ts';
import { ApiConfigSource_ApiType } from '../proto/generated/enums.ts';
import type { Bootstrap } from '../proto/generated/messages.ts';
import type { Generation } from '../proto/message-names.ts';
import { convertApiSource, convertConfigSource } from '../resources/config-source.ts';
import type { Conversion } from '../resources/conversion.ts';
import type { ConfigSource } from '../resources/messages.ts';
import type { SourceContext } from '../resources/source-context.ts';
import { fieldPath } from '../source/field-path.ts';

const PATH = 'dynamic_resources';

export interface DynamicResourcesSettings {
  /** Undefined where all are in the bootstrap. */
  readonly clusters: ConfigSourceSettings | undefined;
  readonly listeners: ConfigSourceSettings | undefined;
  /** The stream of all sources that name no other; undefined where there is none. */
  readonly aggregated: GrpcSourceSettings | undefined;
}

export function convertDynamicResources(
  { dynamic_resources: message }: Bootstrap,
  conversion: Conversion,
): DynamicResourcesSettings {
  const { cds_config: clusters = null, lds_config: listeners = null, ads_config: aggregated = null } = message ?? {};
  const convert = (source: ConfigSource | null, field: string): ConfigSourceSettings | undefined =>
    source === null ? undefined : convertConfigSource(source, fieldPath(PATH, field), conversion);
  return {
    clusters: convert(clusters, 'cds_config'),
    listeners: convert(listeners, 'lds_config'),
    aggregated:
      aggregated === null ? undefined : convertApiSource(aggregated, fieldPath(PATH, 'ads_config'), conversion),
  };
}

/** @param generation of the bootstrap. */
export function sourceContext({ dynamic_resources: message }: Bootstrap, generation: Generation): SourceContext {
  const aggregated = message?.ads_config ?? null;
  const aggregatesChanges = aggregated?.api_type === ApiConfigSource_ApiType.DELTA_GRPC;
  return { generation, isAggregated: aggregated !== null, aggregatesChanges };
}

export function discoversClusters({ dynamic_resources: message }: Bootstrap): boolean {
  return (message?.cds_config ?? null) !== null;
}
