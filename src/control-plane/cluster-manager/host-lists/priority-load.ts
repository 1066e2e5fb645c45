// How traffic is shared among the priorities of a cluster: what each can take, what spills over to the next, and
// who is in panic. Worked out when the members change, never per request. All shares are whole percent.
// Source: upstream semantics of the reference; spec 2.8 (priorities, overprovisioning, healthy_panic_threshold).

/** Members of one priority by class; a host can be excluded and unhealthy at once. */
export interface PriorityMembers {
  readonly hosts: number;
  readonly excluded: number;
  readonly healthy: number;
  readonly degraded: number;
}

export interface PriorityState {
  readonly counts: PriorityMembers;
  /** The same as sums of weights where health goes by weight, otherwise the counts again. */
  readonly capacity: PriorityMembers;
  /** Of this one alone; absent: that of all. */
  readonly overprovisioningFactor?: number;
}

export interface PriorityLimits {
  /** Percent; 140 lets 72 of 100 hosts carry everything. */
  readonly overprovisioningFactor: number;
  /** Percent of available hosts below which a priority is in panic; 0 never. */
  readonly healthyPanicThreshold: number;
}

/** One entry per priority; healthy and degraded together make 100. */
export interface PriorityLoads {
  readonly healthy: readonly number[];
  readonly degraded: readonly number[];
  readonly isPanic: readonly boolean[];
  /** Percent of all requests that its hosts could take. */
  readonly availability: { readonly healthy: readonly number[]; readonly degraded: readonly number[] };
}

const ALL = 100;

/** @param priorities at least one, by priority. */
export function priorityLoads(priorities: readonly PriorityState[], limits: PriorityLimits): PriorityLoads {
  const { healthyPanicThreshold } = limits;
  const availabilityOf = (usable: 'healthy' | 'degraded'): readonly number[] =>
    priorities.map(({ capacity, overprovisioningFactor: own = limits.overprovisioningFactor }) =>
      availability(capacity, capacity[usable], own),
    );
  const healthy = availabilityOf('healthy');
  const degraded = availabilityOf('degraded');
  const available = Math.min(ALL, sum(healthy) + sum(degraded));
  const loads = { healthy: priorities.map(() => 0), degraded: priorities.map(() => 0) };
  const isPanic = priorities.map(({ counts }) => available !== ALL && isBelow(counts, healthyPanicThreshold));
  const hasHosts = priorities.some(({ counts }) => counts.hosts > 0);
  if (hasHosts && isPanic.every(Boolean)) loads.healthy = sharesBySize(priorities);
  else if (available === 0) loads.healthy[0] = ALL;
  else spread(healthy, degraded, available, loads);
  return { ...loads, isPanic, availability: { healthy, degraded } };
}

function availability(capacity: PriorityMembers, usable: number, factor: number): number {
  const total = capacity.hosts - capacity.excluded;
  return total > 0 ? Math.min(ALL, Math.floor((factor * usable) / total)) : 0;
}

/** Whether fewer are available than a threshold asks for. */
export function isBelow(counts: PriorityMembers, threshold: number): boolean {
  const total = counts.hosts - counts.excluded;
  if (total <= 0) return threshold > 0;
  return (ALL * counts.healthy) / total + (ALL * counts.degraded) / total < threshold;
}

/** Fills the healthy hosts of each priority in turn, then the degraded ones; what rounding leaves goes to the first. */
function spread(
  healthy: readonly number[],
  degraded: readonly number[],
  available: number,
  loads: { readonly healthy: number[]; readonly degraded: number[] },
): void {
  let left = ALL;
  const fill = (shares: readonly number[], into: number[]): void => {
    for (const [priority, share] of shares.entries()) {
      const load = Math.min(left, Math.floor((share * ALL) / available));
      into[priority] = load;
      left -= load;
    }
  };
  fill(healthy, loads.healthy);
  fill(degraded, loads.degraded);
  const firstHealthy = healthy.findIndex((share) => share > 0);
  if (firstHealthy !== -1) loads.healthy[firstHealthy]! += left;
  else loads.degraded[degraded.findIndex((share) => share > 0)]! += left;
}

/** Everyone in panic: health says nothing any more, so traffic follows the number of hosts, of which there are some. */
function sharesBySize(priorities: readonly PriorityState[]): number[] {
  const total = sum(priorities.map(({ counts }) => counts.hosts));
  const shares = priorities.map(({ counts }) => Math.floor((ALL * counts.hosts) / total));
  shares[priorities.findIndex(({ counts }) => counts.hosts > 0)]! += ALL - sum(shares);
  return shares;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
