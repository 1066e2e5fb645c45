// One member of a cluster in service: its places in shared memory, and the view of it that listings read. It lives as
// long as its address, or the name of a LOGICAL_DNS member, stays in the cluster. Main thread.

import { memberKey } from '../../base/address.ts';
import type { ConfiguredHealth, HostSettings, HostSnapshot } from '../../snapshot/index.ts';
import { HOST_STATS, type StatBlock } from '../../stats/index.ts';
import { HealthFlag } from '../../wasm/shared-memory.ts';
import type { ClusterPlaces } from './active-cluster.ts';

/** A success rate that nothing has measured. */
const NOT_MEASURED = -1;

const CONFIGURED_FLAGS = HealthFlag.failedEdsHealth | HealthFlag.degradedEdsHealth | HealthFlag.edsStatusDraining;
const FLAGS_OF_HEALTH: Readonly<Record<ConfiguredHealth, number>> = {
  healthy: 0,
  degraded: HealthFlag.degradedEdsHealth,
  unhealthy: HealthFlag.failedEdsHealth,
  draining: HealthFlag.failedEdsHealth | HealthFlag.edsStatusDraining,
};

/** Sums over all threads; the keys are those of a listing's lines. */
type HostStats = Readonly<Record<keyof (typeof HOST_STATS)['index'], number>>;

export class ActiveHost {
  readonly #places: ClusterPlaces;
  readonly #statBlock: StatBlock;
  readonly #recordAddress: number;
  #snapshot: HostSnapshot;

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has been allocated then. */
  constructor(settings: HostSettings, places: ClusterPlaces) {
    const { memory, stats } = places;
    this.#places = places;
    this.#recordAddress = memory.recordAllocator.allocateHost(settings.weight);
    try {
      this.#statBlock = stats.allocateUnnamed(HOST_STATS);
    } catch (error) {
      memory.recordAllocator.free(this.#recordAddress);
      throw error;
    }
    this.#snapshot = this.#freeze(settings);
    this.#applyHealth(settings.health);
  }

  get snapshot(): HostSnapshot {
    return this.#snapshot;
  }

  /** Whether the settings can be taken over by this host; another locality makes it another host. */
  isSame(settings: HostSettings): boolean {
    const { region, zone, subZone } = settings.locality;
    const own = this.#snapshot.locality;
    return (
      memberKey(settings) === memberKey(this.#snapshot) &&
      region === own.region &&
      zone === own.zone &&
      subZone === own.subZone
    );
  }

  /** Takes over weight, health, priority and the like, and a logical member's address. @returns whether anything has changed. */
  update(settings: HostSettings): boolean {
    const before = JSON.stringify(this.#snapshot);
    const snapshot = this.#freeze(settings);
    if (JSON.stringify(snapshot) === before) return false;
    this.#snapshot = snapshot;
    this.#places.memory.shared.records.setWeight(this.#recordAddress, settings.weight);
    this.#applyHealth(settings.health);
    return true;
  }

  /** Gives the places back; they serve others once the reclaimer says so. */
  retire(): void {
    this.#places.memory.retireRecord(this.#recordAddress);
    this.#places.stats.retireUnnamed(this.#statBlock);
  }

  get address(): HostSettings['address'] {
    return this.#snapshot.address;
  }

  get hostname(): string {
    return this.#snapshot.hostname;
  }

  get locality(): HostSettings['locality'] {
    return this.#snapshot.locality;
  }

  get hashKey(): string {
    return this.#snapshot.hashKey;
  }

  get localityWeight(): number {
    return this.#snapshot.localityWeight;
  }

  get subsetValues(): HostSettings['subsetValues'] {
    return this.#snapshot.subsetValues;
  }

  get canary(): boolean {
    return this.#snapshot.canary;
  }

  get priority(): number {
    return this.#snapshot.priority;
  }

  get healthFlags(): number {
    return this.#places.memory.shared.records.healthFlags(this.#recordAddress);
  }

  get recordAddress(): number {
    return this.#recordAddress;
  }

  get weight(): number {
    return this.#snapshot.weight;
  }

  get successRate(): number {
    return NOT_MEASURED;
  }

  get localOriginSuccessRate(): number {
    return NOT_MEASURED;
  }

  get stats(): HostStats {
    const entries = HOST_STATS.rows.map((row) => [row.name, this.#statBlock.value(row.name)]);
    return Object.fromEntries(entries) as HostStats;
  }

  #freeze(settings: HostSettings): HostSnapshot {
    const places = { recordAddress: this.#recordAddress, statBlock: this.#statBlock.cell };
    return Object.freeze({ ...settings, ...places });
  }

  #applyHealth(health: ConfiguredHealth): void {
    const { records } = this.#places.memory.shared;
    const flags = FLAGS_OF_HEALTH[health];
    records.setHealthFlag(this.#recordAddress, CONFIGURED_FLAGS & ~flags, false);
    records.setHealthFlag(this.#recordAddress, flags, true);
  }
}
