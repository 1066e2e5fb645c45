// Hosts that a retry should not go to: the ones that were tried, canaries, hosts with certain metadata, whole
// priorities. Made for requests whose policy names any of it.

import { type JsonValue, sameJson } from '../../base/json.ts';
import type { RetryHostPredicate } from '../../snapshot/index.ts';
import type { RetryPolicy } from '../route/retry-policy.ts';
import type { Host } from '../upstream/host.ts';
import type { HostSelection } from '../upstream/host-selection.ts';

/** Metadata namespaces that the balancer reads, the canonical one first. */
const BALANCER_NAMESPACES = ['proxy.lb', 'envoy.lb'] as const;

export class TriedHosts implements HostSelection {
  draw = 0;
  readonly maxDraws: number;
  readonly spentPriorities = new Set<number>();
  readonly #predicates: readonly RetryHostPredicate[];
  readonly #frequency: number;
  readonly #hosts = new Set<Host>();
  #priorities: number[] = [];
  /** Priorities have been spent that the picker has not taken off. */
  #hasSpent = false;

  constructor({ hostPredicates, maxFurtherDraws, previousPrioritiesFrequency }: RetryPolicy) {
    this.maxDraws = 1 + maxFurtherDraws;
    this.#predicates = hostPredicates;
    this.#frequency = previousPrioritiesFrequency;
  }

  /** An attempt goes to this host. @param priority of its own, among those of the cluster that is asked. */
  note(host: Host, priority = host.priority): void {
    this.#hosts.add(host);
    if (this.#frequency === 0) return;
    if (this.#hasSpent && this.spentPriorities.size === 0) {
      // Whoever picks had none left, and has begun anew.
      this.#hasSpent = false;
      this.#priorities = [];
    }
    this.#priorities.push(priority);
    if (this.#priorities.length % this.#frequency !== 0) return;
    this.#hasSpent = true;
    for (const priority of this.#priorities) this.spentPriorities.add(priority);
  }

  accepts(host: Host): boolean {
    // Without `some` and its closure: hosts are drawn for each retry.
    for (const predicate of this.#predicates) if (this.#turnsDown(predicate, host)) return false;
    return true;
  }

  #turnsDown(predicate: RetryHostPredicate, host: Host): boolean {
    switch (predicate.kind) {
      case 'previous-hosts':
        return this.#hosts.has(host);
      case 'canary-hosts':
        return host.canary;
      case 'metadata':
        return Object.entries(predicate.values).every(([key, value]) => says(host, key, value));
    }
  }
}

/** A list says each of its elements. */
function says({ metadata }: Host, key: string, wanted: JsonValue): boolean {
  const namespace = BALANCER_NAMESPACES.find((name) => metadata !== undefined && Object.hasOwn(metadata, name));
  const value = namespace === undefined ? undefined : metadata![namespace]![key];
  if (value === undefined) return false;
  return Array.isArray(value) ? value.some((element: JsonValue) => sameJson(element, wanted)) : sameJson(value, wanted);
}
