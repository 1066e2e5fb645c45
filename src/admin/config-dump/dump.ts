// What /config_dump is made of: some top-level dumps, each a message of which lists may be as long as the configuration. The items
// of a list are therefore made when they are asked for, one after the other.

import { type MessageType, protoSchema } from '../../config/index.ts';
import type { ResourceView } from '../views/index.ts';

export interface DumpItem {
  /** Of the resource, which name_regex asks for. */
  readonly name: string;
  /** The whole item in its binary form. */
  readonly message: () => Uint8Array | Promise<Uint8Array>;
}

export interface DumpList {
  readonly field: string;
  /** Read once. */
  readonly items: Iterable<DumpItem>;
}

export interface Dump {
  readonly type: MessageType;
  /** The fields that are no lists, in their binary form. */
  readonly head: Uint8Array;
  /** In the order of their fields. */
  readonly lists: readonly DumpList[];
}

export function adminType(name: string): MessageType {
  return protoSchema().messageType(`proxy.admin.v3.${name}`);
}

export const RESOURCE_TYPES = {
  cluster: 'proxy.config.cluster.v3.Cluster',
  listener: 'proxy.config.listener.v3.Listener',
  route_config: 'proxy.config.route.v3.RouteConfiguration',
  scoped_route_configs: 'proxy.config.route.v3.ScopedRouteConfiguration',
  secret: 'proxy.extensions.transport_sockets.tls.v3.Secret',
  ecds_filter: 'proxy.config.core.v3.TypedExtensionConfig',
  endpoint_config: 'proxy.config.endpoint.v3.ClusterLoadAssignment',
} as const;

/** The resource in an Any of a dump's item, by the name of its field. */
export function resourceType(field: string): MessageType | undefined {
  const known: Readonly<Record<string, string>> = RESOURCE_TYPES;
  return Object.hasOwn(known, field) ? protoSchema().messageType(known[field]!) : undefined;
}

export function anyOf(typeName: string, value: Uint8Array): object {
  return { type_url: typeName, value };
}

/** Of the last resource of a name that may not be. */
export function errorState(
  { version, message, updatedMs, error }: Pick<ResourceView, 'version' | 'message' | 'updatedMs' | 'error'>,
  field: keyof typeof RESOURCE_TYPES,
): object {
  return {
    failed_configuration: anyOf(RESOURCE_TYPES[field], message),
    last_update_attempt: timestamp(updatedMs),
    details: error,
    version_info: version,
  };
}

export function timestamp(epochMs: number): object {
  const seconds = Math.floor(epochMs / 1000);
  return { seconds, nanos: (epochMs - seconds * 1000) * 1_000_000 };
}
