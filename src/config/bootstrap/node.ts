// The node: who this proxy says it is. The command line wins over the file (spec 2.7, --service-*).

import type { Message } from 'protobufjs/light.js';
import { buildVersion, USER_AGENT_NAME } from '../../base/software.ts';
import type { Node } from '../proto/generated/messages.ts';
import type { ProtoSchema } from '../proto/root.ts';
import { jsonToStruct } from '../proto/struct.ts';
import { convertLocalityName } from '../resources/endpoint.ts';
import { NO_EXTENSIONS } from '../resources/extension-manifests.ts';
import { structToJson } from '../resources/struct.ts';
import { linkedExtensions } from '../support/linked-extensions.ts';
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

/** The message of a node as it is in force, with what the node says of the program. */
export function completeNode(
  message: Node | null,
  { id, cluster, locality }: NodeSettings,
  {
    software,
    extensions = NO_EXTENSIONS,
    disabledExtensions,
  }: Pick<LoadBootstrapInput, 'software' | 'extensions' | 'disabledExtensions'>,
  schema: ProtoSchema,
): Node {
  const node = schema.messageType('proxy.config.core.v3.Node').create({ ...message }) as Message & Node;
  if (id !== node.id) node.id = id;
  if (cluster !== node.cluster) node.cluster = cluster;
  if (locality.zone !== (node.locality?.zone ?? ''))
    node.locality = { region: '', sub_zone: '', ...node.locality, zone: locality.zone };
  if (software === undefined) return node;
  const { major, minor, patch, metadata } = buildVersion(software);
  node.user_agent_name = USER_AGENT_NAME;
  node.user_agent_build_version = {
    version: { major_number: major, minor_number: minor, patch },
    metadata: jsonToStruct(metadata),
  };
  node.extensions = linkedExtensions(extensions, disabledExtensions).map(
    (extension) => ({ ...extension }) as Node['extensions'][number],
  );
  return node;
}
