// Which server of a Redis cluster gets a command: the one that has the slot of its key, or for commands that read one of those that
// have a copy. Worker thread.

import { REDIS_SLOTS, roleOf, slotOf } from '../../../base/redis-slots.ts';
import type { FilterHost } from '../../../data-plane/index.ts';
import type { ReadPolicy } from './settings.ts';

interface Shard {
  readonly primary: FilterHost;
  readonly replicas: FilterHost[];
}

/** By the members of a cluster; null for those of no Redis cluster. */
const TABLES = new WeakMap<readonly FilterHost[], SlotTable | null>();

/** @param members the same list as long as none of them changes. */
export function slotsOf(members: readonly FilterHost[]): SlotTable | null {
  let table = TABLES.get(members);
  if (table === undefined) {
    const hasRoles = members.some(({ metadata }) => roleOf(metadata) !== null);
    table = hasRoles ? new SlotTable(members) : null;
    TABLES.set(members, table);
  }
  return table;
}

export class SlotTable {
  readonly #shards: Shard[] = [];
  /** Of each slot: 0 for none, else the place of its shard and 1. */
  readonly #bySlot = new Uint16Array(REDIS_SLOTS);

  constructor(members: readonly FilterHost[]) {
    const byAddress = new Map<string, Shard>();
    for (const host of members) {
      const role = roleOf(host.metadata);
      if (role?.kind !== 'primary') continue;
      const shard: Shard = { primary: host, replicas: [] };
      this.#shards.push(shard);
      byAddress.set(host.label, shard);
      for (const [first, last] of role.slots) this.#bySlot.fill(this.#shards.length, first, last + 1);
    }
    for (const host of members) {
      const role = roleOf(host.metadata);
      if (role?.kind === 'replica') byAddress.get(role.of)?.replicas.push(host);
    }
  }

  /** @param random a u32 each time. @returns null for a slot that nobody has, or that has no replica where one is asked for. */
  hostFor(key: Buffer, policy: ReadPolicy, random: () => number): FilterHost | null {
    const shard = this.#shards[this.#bySlot[slotOf(key)]! - 1];
    if (shard === undefined) return null;
    const { primary, replicas } = shard;
    switch (policy) {
      case 'primary':
        return primary;
      case 'prefer-primary':
        return primary.isHealthy ? primary : oneOf([primary, ...replicas], random);
      case 'replica':
        return oneOf(replicas, random);
      case 'prefer-replica':
        return oneOf(replicas.some(({ isHealthy }) => isHealthy) ? replicas : [primary, ...replicas], random);
      case 'any':
        return oneOf([primary, ...replicas], random);
    }
  }
}

/** One that is well, if there is any. */
function oneOf(hosts: readonly FilterHost[], random: () => number): FilterHost | null {
  const well = hosts.filter(({ isHealthy }) => isHealthy);
  const chosen = well.length > 0 ? well : hosts;
  return chosen.length === 0 ? null : chosen[random() % chosen.length]!;
}
