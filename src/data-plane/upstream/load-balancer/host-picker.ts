// What the balancing policies have in common. A picker serves one list of hosts: those of one priority and health.

export interface WeightedHost {
  /** 1 or more. */
  readonly weight: number;
}

export interface HostPicker<T> {
  /** Takes over the list; what a policy remembers between picks survives as far as it can. */
  setHosts(hosts: readonly T[]): void;
  /** The host for one request, or null when there is none. Hot: no allocation. */
  next(): T | null;
}

export function areWeightsEqual(hosts: readonly WeightedHost[]): boolean {
  const weight = hosts[0]?.weight;
  return hosts.every((host) => host.weight === weight);
}
