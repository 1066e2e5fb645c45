// Balancers of the core that follow no key: least request with its counts of active requests, and round robin.

import { HOST_RECORD_SIZE } from '../../assembly/layout/shared-memory.ts';
import type { HostPicker, PickPlan } from '../wasm/lb/host-picker.ts';
import type { LbTables } from '../wasm/lb/table-builder.ts';
import type { SharedMemoryOwner } from '../wasm/shared-memory-owner.ts';
import { argumentError, show } from './arguments.ts';
import { freedError } from './hash-tables.ts';
import type { Host, LeastRequest, RoundRobin } from './types.ts';

class CorePicker {
  readonly #tables: LbTables;
  readonly #plan: PickPlan;
  /** Undefined once freed. */
  #picker: HostPicker | undefined;

  constructor(tables: LbTables, plan: PickPlan, picker: HostPicker) {
    this.#tables = tables;
    this.#plan = plan;
    this.#picker = picker;
  }

  get bytes(): number {
    return this.#picker === undefined ? 0 : this.#tables.bytesOf(this.#plan);
  }

  pick(): number {
    if (this.#picker === undefined) throw freedError();
    return this.#picker.pick();
  }

  free(): void {
    if (this.#picker === undefined) return;
    this.#picker = undefined;
    this.#tables.free(this.#plan);
  }

  protected get isFreed(): boolean {
    return this.#picker === undefined;
  }
}

export class CoreRoundRobin extends CorePicker implements RoundRobin {}

export class CoreLeastRequest extends CorePicker implements LeastRequest {
  readonly #hosts: HostRecords;

  constructor(tables: LbTables, plan: PickPlan, picker: HostPicker, hosts: HostRecords) {
    super(tables, plan, picker);
    this.#hosts = hosts;
  }

  override get bytes(): number {
    return super.bytes + this.#hosts.bytes;
  }

  start(index: number): void {
    this.#hosts.addActive(this.#checked(index), 1);
  }

  finish(index: number): void {
    if (this.#hosts.active(this.#checked(index)) === 0)
      throw argumentError('index', `host ${index} has no request active`);
    this.#hosts.addActive(index, -1);
  }

  active(index: number): number {
    return this.#hosts.active(this.#checked(index));
  }

  override free(): void {
    super.free();
    this.#hosts.free();
  }

  #checked(index: number): number {
    if (this.isFreed) throw freedError();
    const { length } = this.#hosts.addresses;
    if (index >>> 0 === index && index < length) return index;
    throw argumentError('index', `${show(index)} is not a whole number from 0 to ${length - 1}`);
  }
}

/** The records of a balancer's hosts in shared memory, where active requests are counted. */
export class HostRecords {
  readonly addresses: readonly number[];
  readonly #owner: SharedMemoryOwner;
  #isFreed = false;

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing is left behind then. */
  constructor(owner: SharedMemoryOwner, hosts: readonly Host[]) {
    const addresses: number[] = [];
    this.#owner = owner;
    this.addresses = addresses;
    try {
      for (const { weight = 1 } of hosts) addresses.push(owner.recordAllocator.allocateHost(weight));
    } catch (error) {
      this.free();
      throw error;
    }
  }

  get bytes(): number {
    return this.#isFreed ? 0 : this.addresses.length * HOST_RECORD_SIZE;
  }

  active(index: number): number {
    return this.#owner.shared.records.activeRequests(this.addresses[index]!);
  }

  addActive(index: number, n: number): void {
    this.#owner.shared.records.addActiveRequests(this.addresses[index]!, n);
  }

  free(): void {
    if (this.#isFreed) return;
    this.#isFreed = true;
    for (const address of this.addresses) this.#owner.recordAllocator.free(address);
  }
}
