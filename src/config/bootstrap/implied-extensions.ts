// Extensions that resources use without naming them: a field left at its default, or a word that stands for one. Those
// that are named are looked at by the support check.

import type { ExtensionCategory } from '../proto/extensions.ts';
import { Cluster_LbPolicy } from '../proto/generated/enums.ts';
import type { Bootstrap, Cluster, Listener } from '../proto/generated/messages.ts';
import { discoveryTypeOf } from '../resources/discovery-type.ts';
import { enumName } from '../resources/enum-name.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { choiceByClientHello } from '../resources/listener-filters.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import { type DisabledExtensions, IS_DISABLED } from '../support/index.ts';
import { CLUSTERS_PATH, LISTENERS_PATH } from './bootstrap-checks.ts';

interface ImpliedExtension {
  readonly category: ExtensionCategory;
  readonly name: string;
  /** Field path of what implies it. */
  readonly at: string;
}

const RAW_BUFFER = 'proxy.transport_sockets.raw_buffer';

/** Reports each use of a disabled extension that is not named. */
export function checkImpliedExtensions(
  implied: Iterable<ImpliedExtension>,
  disabled: DisabledExtensions,
  faults: FaultSink,
): void {
  if (disabled.isEmpty) return;
  for (const { category, name, at } of implied) {
    if (disabled.hasName(category, name)) faults.error(at, `stands for ${quote(name)}, which ${IS_DISABLED}`);
  }
}

export function* impliedByBootstrap({ static_resources: resources }: Bootstrap): Generator<ImpliedExtension> {
  for (const [index, cluster] of (resources?.clusters ?? []).entries()) {
    yield* impliedByCluster(cluster, itemPath(CLUSTERS_PATH, index));
  }
  for (const [index, listener] of (resources?.listeners ?? []).entries()) {
    yield* impliedByListener(listener, itemPath(LISTENERS_PATH, index));
  }
}

export function* impliedByCluster(cluster: Cluster, at: string): Generator<ImpliedExtension> {
  if (cluster.cluster_type === null) {
    const type = String(discoveryTypeOf(cluster)).toLowerCase();
    yield { category: 'clusters', name: `proxy.cluster.${type}`, at: fieldPath(at, 'type') };
  }
  if (cluster.load_balancing_policy === null) {
    const category = 'load_balancing_policies';
    const policy = enumName(Cluster_LbPolicy, cluster.lb_policy)
      .toLowerCase()
      .replace('original_dst_lb', 'cluster_provided');
    yield { category, name: `proxy.${category}.${policy}`, at: fieldPath(at, 'lb_policy') };
    const subsetAt = fieldPath(at, 'lb_subset_config');
    if (cluster.lb_subset_config !== null) yield { category, name: `proxy.${category}.subset`, at: subsetAt };
  }
  if (cluster.transport_socket === null) {
    yield { category: 'transport_sockets.upstream', name: RAW_BUFFER, at: fieldPath(at, 'transport_socket') };
  }
}

export function* impliedByListener(listener: Listener, at: string): Generator<ImpliedExtension> {
  const inspected = choiceByClientHello(listener);
  if (inspected !== undefined) {
    const place = fieldPath(at, inspected);
    yield { category: 'filters.listener', name: 'proxy.filters.listener.tls_inspector', at: place };
  }
  const chains = listener.filter_chains.map((chain, index) => ({
    chain,
    place: itemPath(fieldPath(at, 'filter_chains'), index),
  }));
  if (listener.default_filter_chain !== null) {
    chains.push({ chain: listener.default_filter_chain, place: fieldPath(at, 'default_filter_chain') });
  }
  for (const { chain, place } of chains) {
    if (chain.transport_socket !== null) continue;
    yield { category: 'transport_sockets.downstream', name: RAW_BUFFER, at: fieldPath(place, 'transport_socket') };
  }
}
