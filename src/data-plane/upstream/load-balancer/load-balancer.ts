// Chooses a host in two steps: the priority and health class by their shares of the traffic, then a host of that list
// by the policy. Shares and lists are made when the members change; a request that has only one list to choose from,
// which is the rule, pays for the second step alone. Step 4 of the request flow.

import type { Random } from '../../../base/random.ts';
import { HealthMask } from '../../../wasm/shared-records.ts';
import type { HostPicker, WeightedHost } from './host-picker.ts';
import { type PriorityLimits, type PriorityMembers, type PriorityState, priorityLoads } from './priority-load.ts';

const { unhealthy: UNHEALTHY, degraded: DEGRADED, excluded: EXCLUDED } = HealthMask;

export interface BalancedHost extends WeightedHost {
  readonly priority: number;
  /** HealthFlag bits of this moment. */
  readonly healthFlags: number;
}

export interface LoadBalancerOptions<T> extends PriorityLimits {
  readonly weightedPriorityHealth: boolean;
  readonly random: Random;
  readonly createPicker: () => HostPicker<T>;
  /** A request goes to any host of a priority because too few are healthy. */
  readonly onPanic: () => void;
}

/** The lists of one priority; each has a picker of its own, which lives as long as the balancer. */
interface PriorityPickers<T> {
  readonly all: HostPicker<T>;
  readonly healthy: HostPicker<T>;
  readonly degraded: HostPicker<T>;
}

/** Picks from the list of all hosts, in shared memory. */
export interface IndexPicker {
  /** Hot: at most one call. */
  pick(): number;
}

interface Share<T> {
  /** Percent of the requests. */
  readonly load: number;
  readonly picker: HostPicker<T>;
  readonly isPanic: boolean;
}

export class LoadBalancer<T extends BalancedHost> {
  readonly #options: LoadBalancerOptions<T>;
  readonly #pickers: PriorityPickers<T>[] = [];
  #shares: readonly Share<T>[] = [];
  /** The one list that takes everything, unless there are several or it is in panic. */
  #sole: HostPicker<T> | null = null;
  /** Takes the place of #sole where that is the list of all hosts. */
  #shared: IndexPicker | null = null;
  #hosts: readonly T[] = [];

  constructor(options: LoadBalancerOptions<T>) {
    this.#options = options;
    this.setHosts([]);
  }

  /**
   * Takes over members, their weights and their health as it is now.
   * @param openShared opens the balancer that main has made over this very list; used while all of it is eligible.
   */
  setHosts(hosts: readonly T[], openShared?: () => IndexPicker): void {
    this.#hosts = hosts;
    const priorityCount = hosts.reduce((count, { priority }) => Math.max(count, priority + 1), 1);
    while (this.#pickers.length < priorityCount) this.#pickers.push(this.#createPickers());
    const states = this.#pickers.map((pickers, priority) => {
      const members = hosts.filter((host) => host.priority === priority);
      return fillPickers(pickers, members, this.#options.weightedPriorityHealth);
    });
    this.#shares = this.#shareOut(states);
    const [first] = this.#shares;
    this.#sole = this.#shares.length === 1 && first?.isPanic === false ? first.picker : null;
    const isWhole = this.#sole !== null && states.some(({ counts }) => counts.healthy === hosts.length);
    this.#shared = isWhole && openShared ? openShared() : null;
  }

  /** The host for the next request, or null when there is none to use. Hot: no allocation. */
  next(): T | null {
    if (this.#shared !== null) return this.#hosts[this.#shared.pick()]!;
    return this.#sole === null ? this.#nextByShare() : this.#sole.next();
  }

  #nextByShare(): T | null {
    let left = (this.#options.random.u32() % 100) + 1;
    for (const share of this.#shares) {
      left -= share.load;
      if (left > 0) continue;
      if (share.isPanic) this.#options.onPanic();
      return share.picker.next();
    }
    return null;
  }

  #shareOut(states: readonly PriorityState[]): Share<T>[] {
    const { healthy, degraded, isPanic } = priorityLoads(states, this.#options);
    const shareOf = (load: number, priority: number, health: 'healthy' | 'degraded'): Share<T> => {
      const pickers = this.#pickers[priority]!;
      const inPanic = isPanic[priority]!;
      return { load, picker: inPanic ? pickers.all : pickers[health], isPanic: inPanic };
    };
    return [
      ...healthy.map((load, priority) => shareOf(load, priority, 'healthy')),
      ...degraded.map((load, priority) => shareOf(load, priority, 'degraded')),
    ].filter(({ load }) => load > 0);
  }

  #createPickers(): PriorityPickers<T> {
    const { createPicker } = this.#options;
    return { all: createPicker(), healthy: createPicker(), degraded: createPicker() };
  }
}

function fillPickers<T extends BalancedHost>(
  pickers: PriorityPickers<T>,
  hosts: readonly T[],
  isWeighted: boolean,
): PriorityState {
  const excluded = hosts.filter(({ healthFlags }) => (healthFlags & EXCLUDED) !== 0);
  const healthy = hosts.filter(({ healthFlags }) => (healthFlags & (UNHEALTHY | DEGRADED)) === 0);
  const degraded = hosts.filter(({ healthFlags }) => (healthFlags & UNHEALTHY) === 0 && (healthFlags & DEGRADED) !== 0);
  pickers.all.setHosts(hosts);
  pickers.healthy.setHosts(healthy);
  pickers.degraded.setHosts(degraded);
  const measure = (size: (list: readonly T[]) => number): PriorityMembers => ({
    hosts: size(hosts),
    excluded: size(excluded),
    healthy: size(healthy),
    degraded: size(degraded),
  });
  const counts = measure((list) => list.length);
  const capacity = isWeighted ? measure((list) => list.reduce((sum, { weight }) => sum + weight, 0)) : counts;
  return { counts, capacity };
}
