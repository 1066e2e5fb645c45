// EdsClusterConfig message → where the members of a cluster come from, and how their metadata is read.

import type { EdsDiscoverySettings } from '../../snapshot/index.ts';
import { convertConfigSource, type SourceConversion } from './config-source.ts';
import { convertFamilyOrder } from './family-order.ts';
import { subsetKeys } from './lb-subsets.ts';
import type { Cluster } from './messages.ts';

/** @param at path of the cluster. @returns undefined when it says not where they come from; a fault says so. */
export function convertEdsDiscovery(
  message: Cluster,
  at: string,
  conversion: SourceConversion,
): EdsDiscoverySettings | undefined {
  const config = message.eds_cluster_config;
  // The checks between the fields of a cluster say that it is missing.
  if (config === null) return undefined;
  const sourceAt = `${at}.eds_cluster_config.eds_config`;
  if (config.eds_config === null) {
    conversion.faults.error(sourceAt, 'is required: it says where the endpoints come from');
    return undefined;
  }
  const source = convertConfigSource(config.eds_config, sourceAt, conversion);
  if (source === undefined) return undefined;
  return {
    kind: 'eds',
    serviceName: config.service_name,
    source,
    subsetKeys: [...subsetKeys(message)],
    familyOrder: convertFamilyOrder(message),
  };
}
