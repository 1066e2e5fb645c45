// One member of a cluster in service: its places in shared memory, and the view of it that listings read. It lives as
// long as its address, or the name of a LOGICAL_DNS member, stays in the cluster. Main thread.

import {
  type ConfiguredHealth,
  type HealthCheckSettings,
  type HostSettings,
  type HostSnapshot,
  NO_CELLS,
  type OutlierKind,
} from '../../snapshot/index.ts';
import { HOST_STATS, OUTLIER_HOST_STATS } from '../../stats/index.ts';
import { type FailureRow, HealthFlag } from '../../wasm/shared-memory.ts';
import type { ClusterPlaces } from './active-cluster.ts';
import type { CheckRecord } from './health-check/host-check.ts';
import type { ProbeTarget } from './health-check/probe.ts';
import { probeTarget } from './health-check/probe-target.ts';
import type { Origin } from './outlier-detection/ejection-state.ts';
import type { Volume } from './outlier-detection/success-rate.ts';

/** A success rate that nothing has measured. */
const NOT_MEASURED = -1;

const CONFIGURED_FLAGS = HealthFlag.failedEdsHealth | HealthFlag.degradedEdsHealth | HealthFlag.edsStatusDraining;
const FLAGS_OF_HEALTH: Readonly<Record<ConfiguredHealth, number>> = {
  unknown: 0,
  healthy: 0,
  degraded: HealthFlag.degradedEdsHealth,
  unhealthy: HealthFlag.failedEdsHealth,
  timeout: HealthFlag.failedEdsHealth,
  draining: HealthFlag.failedEdsHealth | HealthFlag.edsStatusDraining,
};

/** Sums over all threads; the keys are those of a listing's lines. */
type HostStats = Readonly<Record<keyof (typeof HOST_STATS)['index'], number>>;

/** How an outlier detector has taken the host out of service. */
export interface EjectionRecord {
  readonly kind: OutlierKind;
  /** Of the host in percent, where hosts were compared; undefined after failures in a row. */
  readonly successRate: number | undefined;
  /** Since the host came, this one included. */
  readonly count: number;
  /** Milliseconds since the Unix epoch. */
  readonly beganMs: number;
  /** Undefined while it lasts. */
  readonly endedMs: number | undefined;
}

/** Of plain data, as settings are: most hosts of an update are as they were, and thousands are looked at. */
function isSameData(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => isSameData(a[key as keyof typeof a], b[key as keyof typeof b]));
}

export class ActiveHost {
  readonly #places: ClusterPlaces;
  readonly #recordAddress: number;
  /** Of its last interval, 0 to 100; for listings. */
  successRate = NOT_MEASURED;
  localOriginSuccessRate = NOT_MEASURED;
  #snapshot: HostSnapshot;
  /** Undefined before the first. */
  lastEjection: EjectionRecord | undefined;
  #lastCheck: CheckRecord | undefined;
  #decidingCheck: CheckRecord | undefined;
  #startedMs: number;
  #isRetired = false;
  /** As they stand in its record: thousands of hosts are looked at with each change of one. Nobody else writes them. */
  #healthFlags = 0;
  /** Where it is noted that flags have changed, perhaps back, and workers have not been told. */
  readonly #news: Set<ActiveHost>;

  /**
   * @param unchecked flags of a host that will be checked, and has not been.
   * @param isWatched an outlier detector wants to know of it.
   * @param news takes it up when its flags change.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has been allocated then.
   */
  constructor(
    settings: HostSettings,
    places: ClusterPlaces,
    unchecked: number,
    isWatched: boolean,
    news: Set<ActiveHost> = new Set(),
  ) {
    const { memory, stats, clock } = places;
    this.#places = places;
    this.#news = news;
    this.#startedMs = clock.monotonicMs();
    this.#recordAddress = memory.recordAllocator.allocateHost(settings.weight);
    let statBlock: number | undefined;
    let outlierBlock: number;
    try {
      statBlock = stats.allocateUnnamed(HOST_STATS);
      outlierBlock = isWatched ? stats.allocateUnnamed(OUTLIER_HOST_STATS) : NO_CELLS;
    } catch (error) {
      if (statBlock !== undefined) stats.retireUnnamed(HOST_STATS, statBlock);
      memory.recordAllocator.free(this.#recordAddress);
      throw error;
    }
    this.#snapshot = this.#freeze(settings, statBlock, outlierBlock);
    this.#applyHealth(settings.health);
    if (!this.isCheckDisabled) this.setHealthFlags(unchecked, true);
  }

  get snapshot(): HostSnapshot {
    return this.#snapshot;
  }

  /**
   * Whether the settings, of the same address or name, can be taken over by this host; another locality or way to check makes it
   * another host.
   */
  isSame(settings: HostSettings): boolean {
    const { region, zone, subZone } = settings.locality;
    const own = this.#snapshot.locality;
    return (
      region === own.region &&
      zone === own.zone &&
      subZone === own.subZone &&
      isSameData(settings.check, this.#snapshot.check)
    );
  }

  /** Takes over weight, health, priority and the like, and a logical member's address. @returns whether anything has changed. */
  update(settings: HostSettings): boolean {
    const { recordAddress: _record, statBlock, outlierBlock, ...before } = this.#snapshot;
    if (isSameData(settings, before)) return false;
    this.#snapshot = this.#freeze(settings, statBlock, outlierBlock);
    this.#places.memory.shared.records.setWeight(this.#recordAddress, settings.weight);
    this.#applyHealth(settings.health);
    return true;
  }

  /** Gives the places back; they serve others once the reclaimer says so. */
  retire(): void {
    this.lendTimes(0);
    this.#isRetired = true;
    this.#news.delete(this);
    this.#places.memory.retireRecord(this.#recordAddress);
    const { statBlock, outlierBlock } = this.#snapshot;
    this.#places.stats.retireUnnamed(HOST_STATS, statBlock);
    // Nothing comes of the block that a host without a detector has.
    this.#places.stats.retireUnnamed(OUTLIER_HOST_STATS, outlierBlock);
  }

  /** It has left its cluster. */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  /** Has workers record its response times in a histogram that is another's; nowhere for 0. */
  lendTimes(cell: number): void {
    if (!this.#isRetired) this.#places.memory.shared.records.setHostTimes(this.#recordAddress, cell);
  }

  /** No active check is made, whatever the cluster says. */
  get isCheckDisabled(): boolean {
    return this.#snapshot.check?.isDisabled ?? false;
  }

  /** How the last active check ended; undefined before the first. */
  get lastCheck(): CheckRecord | undefined {
    return this.#lastCheck;
  }

  /** The check that brought the host into its state; the first of all, if its state is that of the beginning. */
  get decidingCheck(): CheckRecord | undefined {
    return this.#decidingCheck;
  }

  noteCheck(record: CheckRecord, isDeciding: boolean): void {
    this.#lastCheck = record;
    if (isDeciding || this.#decidingCheck === undefined) this.#decidingCheck = record;
  }

  /** Where active checks go now. */
  target(settings: HealthCheckSettings): ProbeTarget {
    return probeTarget(this.#snapshot, settings);
  }

  /** It goes when discovery no longer finds it, even if its cluster keeps hosts that pass their checks. */
  get isRemovable(): boolean {
    return (this.healthFlags & (HealthFlag.failedActiveHealthCheck | HealthFlag.failedEdsHealth)) !== 0;
  }

  /** An outlier detector has taken it out of service. */
  get isEjected(): boolean {
    return (this.healthFlags & HealthFlag.failedOutlierCheck) !== 0;
  }

  /** When it has come, or has passed its checks last after it had failed them; by the clock. */
  get startedMs(): number {
    return this.#startedMs;
  }

  setHealthFlags(flags: number, isSet: boolean): void {
    const before = this.#healthFlags;
    this.#healthFlags = isSet ? before | flags : before & ~flags;
    const changed = before ^ this.#healthFlags;
    if (changed === 0) return;
    this.#news.add(this);
    const passes = !isSet && (changed & HealthFlag.failedActiveHealthCheck) !== 0;
    if (passes) this.#startedMs = this.#places.clock.monotonicMs();
    this.#places.memory.shared.records.setHealthFlag(this.#recordAddress, flags, isSet);
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
    return this.#healthFlags;
  }

  get recordAddress(): number {
    return this.#recordAddress;
  }

  get weight(): number {
    return this.#snapshot.weight;
  }

  get activeConnections(): number {
    return this.#places.memory.shared.records.activeConnections(this.#recordAddress);
  }

  /** Connections and requests since it came, over all workers. */
  get uses(): number {
    const block = this.#ownBlock();
    return block.value('cx_total') + block.value('rq_total');
  }

  /** Requests have named it since this was asked last, and were turned away. */
  takeWanted(): boolean {
    return this.#places.memory.shared.records.takeWanted(this.#recordAddress);
  }

  /** What it has done since it came, over all workers; asked of hosts that are watched. */
  outlierVolume(origin: Origin): Volume {
    const block = this.#places.stats.unnamedBlock(OUTLIER_HOST_STATS, this.#snapshot.outlierBlock);
    return { total: block.value(`${origin}_total`), success: block.value(`${origin}_success`) };
  }

  /** The next failure is the first in its row. */
  endFailures(row: FailureRow): void {
    this.#places.memory.shared.records.endFailures(this.#recordAddress, row);
  }

  get stats(): HostStats {
    const block = this.#ownBlock();
    const entries = HOST_STATS.rows.map((row) => [row.name, block.value(row.name as keyof HostStats)]);
    return Object.fromEntries(entries) as HostStats;
  }

  /** Made when it is asked for: there are very many hosts. */
  #ownBlock() {
    return this.#places.stats.unnamedBlock(HOST_STATS, this.#snapshot.statBlock);
  }

  #freeze(settings: HostSettings, statBlock: number, outlierBlock: number): HostSnapshot {
    return Object.freeze({ ...settings, recordAddress: this.#recordAddress, statBlock, outlierBlock });
  }

  #applyHealth(health: ConfiguredHealth): void {
    const flags = FLAGS_OF_HEALTH[health];
    this.setHealthFlags(CONFIGURED_FLAGS & ~flags, false);
    this.setHealthFlags(flags, true);
  }
}
