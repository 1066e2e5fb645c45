// Clusters whose members requests and connections name, so that no balancer chooses.

/** @param cluster what its settings say of such members. */
export function namesMembers(cluster: { readonly originalDst: unknown; readonly forwardProxy?: unknown }): boolean {
  return cluster.originalDst !== null || cluster.forwardProxy !== undefined;
}

/** Of one among those of an aggregate cluster. */
export function givesNoHosts(name: string): string {
  return `cluster "${name}" gives no hosts here: requests of its own name them`;
}
