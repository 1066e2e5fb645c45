// ORIGINAL_DST: members are made when a worker wants them, and taken back when nobody has used them from one cleanup to the
// next. What is in use is read from their counts: whoever takes a host opens a connection to it, or uses one. Main thread.
//
// Clients say which hosts there are, so there is a limit to them; beyond it nobody is sent anywhere that is not known. Those that
// are wanted in one turn go to the workers together.

import { formatAddress, type IpAddress } from '../../../base/address.ts';
import type { Clock } from '../../../base/clock.ts';
import { errorMessage } from '../../../base/errors.ts';
import type { RuntimeValues } from '../../../base/runtime.ts';
import { ORIGINAL_DST_HOSTS } from '../../../base/runtime-values.ts';
import { BARE_ENDPOINT } from '../../../config/index.ts';
import type { Logger } from '../../../log/index.ts';
import type { HostRefusal, HostSettings, OriginalDstDiscoverySettings } from '../../../snapshot/index.ts';
import type { Discovery } from './discovery.ts';

/** Of one cluster, unless the runtime says otherwise. */
const DEFAULT_MAX_HOSTS = 4096;

/** A member, as its discovery sees it. */
export interface UsedHost {
  /** Over all workers, open or on their way. */
  readonly activeConnections: number;
  /** Connections and requests since it came: a number that grows with use. */
  readonly uses: number;
  /** An outlier detector has taken it out of service, for a time. */
  readonly isEjected: boolean;
  /** Whether requests have named it since this was asked last that got nothing, because it is not healthy. */
  takeWanted(): boolean;
}

/** The cluster whose members these are. */
export interface OnDemandMembers<Host extends UsedHost> {
  readonly name: string;
  readonly size: number;
  /** In any order. */
  members(): readonly Host[];
  /** By its address as text. */
  member(key: string): Host | undefined;
  /** Makes a member of which no worker knows. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  make(member: HostSettings): Host;
  /**
   * Tells all workers of members that have been made.
   * @param onApplied called once, when all workers know them, and those of them who waited for one use it.
   */
  publish(hosts: readonly Host[], onApplied: () => void): void;
  /** Takes members out, and has them taken out of all workers. */
  remove(hosts: readonly Host[]): void;
  /** Nobody needs to wait for members. */
  onReady(): void;
}

export interface OriginalDstTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly runtime: RuntimeValues;
  /** Calls when the messages that have come by now have been dealt with. */
  readonly afterMessages: (callback: () => void) => void;
}

export class OriginalDstDiscovery<Host extends UsedHost> implements Discovery {
  readonly #cleanupIntervalMs: number;
  readonly #tools: OriginalDstTools;
  readonly #cluster: OnDemandMembers<Host>;
  /** Their uses at the last cleanup; without one they stay at the next. */
  readonly #uses = new Map<Host, number>();
  /** Members of which not all workers know: whoever waits for one of them has had no chance to use it. */
  readonly #arriving = new Set<Host>();
  /** Those of them that no worker knows. */
  #made: Host[] = [];
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;
  #hasRefused = false;

  constructor(
    { cleanupIntervalMs }: OriginalDstDiscoverySettings,
    tools: OriginalDstTools,
    cluster: OnDemandMembers<Host>,
  ) {
    this.#cleanupIntervalMs = cleanupIntervalMs;
    this.#tools = tools;
    this.#cluster = cluster;
  }

  start(): void {
    this.#cluster.onReady();
    this.#cleanUpLater();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  /**
   * A worker wants a host that it does not know, perhaps because it has not been told of it yet.
   * @returns why it gets none; undefined when it is on its way.
   */
  want(address: IpAddress): HostRefusal | undefined {
    if (this.#isStopped) return 'overflow';
    // One that is known is on its way: the worker that asks will confirm it behind its question, and it stays till then.
    const key = formatAddress(address);
    return this.#cluster.member(key) !== undefined || this.#make(key, address) ? undefined : 'overflow';
  }

  #make(key: string, address: IpAddress): boolean {
    const { log, runtime } = this.#tools;
    const { name } = this.#cluster;
    const limit = runtime.integer(ORIGINAL_DST_HOSTS) ?? DEFAULT_MAX_HOSTS;
    if (this.#cluster.size >= limit) {
      // A cluster that stays full is worth one line, not one per host.
      if (!this.#hasRefused) log.warning(`cluster ${name} has ${limit} hosts, and makes no more on demand`);
      this.#hasRefused = true;
      return false;
    }
    try {
      const host = this.#cluster.make({ ...BARE_ENDPOINT, address, hostname: name + key });
      this.#arriving.add(host);
      if (this.#made.length === 0) this.#tools.afterMessages(() => this.#publish());
      this.#made.push(host);
      return true;
    } catch (error) {
      log.error(`cluster ${name} cannot make the host ${key}: ${errorMessage(error)}`);
      return false;
    }
  }

  #publish(): void {
    const hosts = this.#made;
    this.#made = [];
    // Another cluster may have its name by now.
    if (this.#isStopped) return;
    this.#cluster.publish(hosts, () => {
      for (const host of hosts) this.#arriving.delete(host);
    });
  }

  #cleanUpLater(): void {
    this.#cancelTimer = this.#tools.clock.after(this.#cleanupIntervalMs, () => {
      this.#cleanUp();
      this.#cleanUpLater();
    });
  }

  #cleanUp(): void {
    const unused = this.#cluster.members().filter((host) => !this.#isUsed(host));
    if (unused.length === 0) return;
    for (const host of unused) this.#uses.delete(host);
    this.#hasRefused = false;
    this.#cluster.remove(unused);
  }

  #isUsed(host: Host): boolean {
    if (this.#arriving.has(host)) return true;
    const before = this.#uses.get(host);
    const { uses } = host;
    this.#uses.set(host, uses);
    // One that came again would come as a healthy one.
    const isKept = host.takeWanted() || host.isEjected;
    return isKept || uses !== before || host.activeConnections > 0;
  }
}
