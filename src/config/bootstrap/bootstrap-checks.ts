// What must hold across the resources of one bootstrap: names and addresses that must differ, references
// that must lead somewhere, an identity where discovery needs one. Each check reports at the later of two
// things that collide, and says where the earlier one is.

import { formatAddress } from '../../base/address.ts';
import { APPLE_DNS_LOOKUPS, runtimeFlag } from '../../base/runtime-values.ts';
import type { ListenerSettings } from '../../snapshot/index.ts';
import type { Bootstrap, Listener } from '../proto/generated/messages.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { checkLocalPriorities } from '../resources/load-assignment.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import type { NodeSettings } from './bootstrap-config.ts';
import { type RuntimeLayerSettings, runtimeValue } from './runtime.ts';

export const CLUSTERS_PATH = 'static_resources.clusters';
export const LISTENERS_PATH = 'static_resources.listeners';

type BootstrapCheck = (bootstrap: Bootstrap, node: NodeSettings, faults: FaultSink) => void;

const CHECKS: readonly BootstrapCheck[] = [
  checkClusterNames,
  checkListenerNames,
  checkLocalCluster,
  checkNodeIdentity,
  checkRuntimeLayers,
  checkHeaderPrefix,
];

export function checkBootstrap(bootstrap: Bootstrap, node: NodeSettings, faults: FaultSink): void {
  for (const check of CHECKS) check(bootstrap, node, faults);
}

function checkClusterNames(bootstrap: Bootstrap, _node: NodeSettings, faults: FaultSink): void {
  checkUnique(bootstrap.static_resources?.clusters ?? [], CLUSTERS_PATH, 'cluster', faults);
}

/** Listeners without a name get one of their own. */
function checkListenerNames(bootstrap: Bootstrap, _node: NodeSettings, faults: FaultSink): void {
  checkUnique(bootstrap.static_resources?.listeners ?? [], LISTENERS_PATH, 'listener', faults);
}

/** Longest prefix with which the longest of the proxy's own headers can still be recognized in a request. */
const MAX_HEADER_PREFIX = 15;

function checkHeaderPrefix({ header_prefix: prefix }: Bootstrap, _node: NodeSettings, faults: FaultSink): void {
  if (prefix.length > MAX_HEADER_PREFIX) {
    faults.error('header_prefix', `${prefix.length} characters exceed the limit ${MAX_HEADER_PREFIX}`);
  }
  if (prefix !== '' && !/^[a-z0-9][a-z0-9-]*[a-z0-9]$/i.test(prefix)) {
    faults.error('header_prefix', `${quote(prefix)} cannot begin header names`);
  }
}

function checkUnique(named: readonly { readonly name: string }[], at: string, what: string, faults: FaultSink): void {
  const first = new Map<string, number>();
  for (const [index, { name }] of named.entries()) {
    const earlier = first.get(name);
    if (earlier === undefined) first.set(name, index);
    else if (name !== '') {
      const message = `${what} ${quote(name)} is already defined at ${itemPath(at, earlier)}`;
      faults.error(fieldPath(itemPath(at, index), 'name'), message);
    }
  }
}

function checkLocalCluster(bootstrap: Bootstrap, _node: NodeSettings, faults: FaultSink): void {
  const name = bootstrap.cluster_manager?.local_cluster_name ?? '';
  if (name === '') return;
  const clusters = bootstrap.static_resources?.clusters ?? [];
  const index = clusters.findIndex((cluster) => cluster.name === name);
  if (index === -1) faults.error('cluster_manager.local_cluster_name', `cluster ${quote(name)} does not exist`);
  const assignment = clusters[index]?.load_assignment ?? null;
  if (assignment === null) return;
  checkLocalPriorities(assignment, `${itemPath(CLUSTERS_PATH, index)}.load_assignment.endpoints`, faults);
}

/** A management server tells proxies apart by these. */
function checkNodeIdentity(bootstrap: Bootstrap, node: NodeSettings, faults: FaultSink): void {
  if (bootstrap.dynamic_resources === null) return;
  if (node.id === '') faults.error('node.id', 'is required by dynamic_resources; set it here or with --service-node');
  if (node.cluster === '') {
    faults.error('node.cluster', 'is required by dynamic_resources; set it here or with --service-cluster');
  }
}

function checkRuntimeLayers(bootstrap: Bootstrap, _node: NodeSettings, faults: FaultSink): void {
  const layers = bootstrap.layered_runtime?.layers ?? [];
  const at = 'layered_runtime.layers';
  checkUnique(layers, at, 'runtime layer', faults);
  const admin = layers.flatMap((layer, index) => (layer.admin_layer === null ? [] : [index]));
  for (const index of admin.slice(1)) {
    faults.error(itemPath(at, index), `an admin_layer is already defined at ${itemPath(at, admin[0]!)}`);
  }
}

/** Two listeners of one protocol cannot share an address; port 0 is a new port each time. */
export function checkListenerAddresses(
  messages: readonly Listener[],
  settings: readonly (ListenerSettings | undefined)[],
  faults: FaultSink,
): void {
  const first = new Map<string, number>();
  for (const [index, listener] of settings.entries()) {
    for (const address of listener?.addresses ?? []) {
      if (address.kind === 'ip' && address.port === 0) continue;
      const text = formatAddress(address);
      const key = listener?.udp === undefined ? text : `${text} UDP`;
      const earlier = first.get(key);
      if (earlier === undefined) first.set(key, index);
      else {
        const other = messages[earlier]!.name
          ? `listener ${quote(messages[earlier]!.name)}`
          : itemPath(LISTENERS_PATH, earlier);
        faults.error(`${itemPath(LISTENERS_PATH, index)}.address`, `${text} is already the address of ${other}`);
      }
    }
  }
}

/** Fields that the lookup service chosen by APPLE_DNS_LOOKUPS cannot honour. */
const RESOLVER_FIELDS = ['dns_resolvers', 'use_tcp_for_dns_lookups', 'dns_resolution_config'] as const;

/** A cluster whose lookups have to go another way than the runtime says cannot be started. */
export function checkAppleLookups(
  bootstrap: Bootstrap,
  layers: readonly RuntimeLayerSettings[],
  faults: FaultSink,
): void {
  const value = runtimeValue(layers, APPLE_DNS_LOOKUPS);
  if (value === undefined || runtimeFlag(value) !== true) return;
  const fail = (at: string): void =>
    faults.error(at, `cannot be set while the runtime value ${APPLE_DNS_LOOKUPS} is true`);
  if (bootstrap.use_tcp_for_dns_lookups) fail('use_tcp_for_dns_lookups');
  if (bootstrap.dns_resolution_config !== null) fail('dns_resolution_config');
  for (const [index, cluster] of (bootstrap.static_resources?.clusters ?? []).entries()) {
    for (const field of RESOLVER_FIELDS) {
      const content = cluster[field];
      const isSet = Array.isArray(content) ? content.length > 0 : content !== null && content !== false;
      if (isSet) fail(fieldPath(itemPath(CLUSTERS_PATH, index), field));
    }
  }
}
