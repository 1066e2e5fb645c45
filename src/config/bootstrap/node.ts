// The node: who this proxy says it is. The command line wins over the file (spec 2.7, --service-*).

import type { Node } from '../proto/generated/messages.ts';
import { convertLocalityName } from '../resources/endpoint.ts';
import { structToJson } from '../resources/struct.ts';
import type { LoadBootstrapInput, NodeSettings } from './bootstrap-config.ts';

type NodeOverrides = Pick<LoadBootstrapInput, 'serviceNode' | 'serviceCluster' | 'serviceZone'>;

export function convertNode(message: Node | null, overrides: NodeOverrides): NodeSettings {
  const locality = convertLocalityName(message?.locality ?? null);
  return {
    id: overrides.serviceNode || (message?.id ?? ''),
    cluster: overrides.serviceCluster || (message?.cluster ?? ''),
    locality: { ...locality, zone: overrides.serviceZone || locality.zone },
    metadata: message?.metadata ? structToJson(message.metadata) : {},
  };
}
