// Checks hosts for a server, as that asks for it (HDS). Main thread. Owns the checks.
//
//   stream opens ──► the node, and what it can check by
//   server: which hosts, how, how often ──► how they are after each such interval, until it says otherwise
//   stream is lost ──► the checks go on; the next one says anew what is to be checked

import { errorMessage } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import {
  encodeCheckOffer,
  encodeClusterHealth,
  encodeHealthReport,
  HEALTH_DISCOVERY_PATH,
  openCheckOrders,
} from '../../config/exchange.ts';
import type {
  CheckOrder,
  CheckOrders,
  DiscoverableResources,
  NodeMessage,
  ServiceStreamSettings,
  UnknownFieldPolicy,
} from '../../config/index.ts';
import { ServerLink, type ServerLinkDependencies } from '../subscription/management-server/server-link.ts';
import { DelegatedCluster, type DelegationTools } from './delegated-cluster.ts';

export interface HealthDelegateDependencies extends ServerLinkDependencies {
  readonly node: NodeMessage;
  readonly counts: { add(name: 'requests' | 'responses' | 'errors' | 'updates'): void };
  readonly discoverable: () => DiscoverableResources;
  readonly unknownFields: UnknownFieldPolicy;
  readonly tools: DelegationTools;
}

/** As loggers know this file. */
const FILE = 'src/control-plane/health-delegation/health-delegate.ts';

/** A report on all hosts costs time: nobody has it made without a pause. */
const SHORTEST_INTERVAL_MS = 100;

export class HealthDelegate {
  readonly #settings: ServiceStreamSettings;
  readonly #deps: HealthDelegateDependencies;
  readonly #link: ServerLink;
  readonly #clusters = new Map<string, DelegatedCluster>();
  /** What the server has said last; it may say the same again. */
  #orders: Buffer | undefined;
  #intervalMs = 0;
  #endWait = (): void => {};
  #isClosed = false;

  constructor(settings: ServiceStreamSettings, deps: HealthDelegateDependencies) {
    this.#settings = settings;
    this.#deps = deps;
    this.#link = new ServerLink(settings.servers, HEALTH_DISCOVERY_PATH[settings.transportGeneration], deps, {
      onOpen: () => this.#opened(),
      onMessage: (bytes) => this.#heard(bytes),
      onLost: () => this.#lost(),
    });
  }

  start(): void {
    if (!this.#isClosed) this.#link.start();
  }

  /** Nothing is checked or told any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#endWait();
    this.#link.close();
    for (const cluster of this.#clusters.values()) cluster.close();
    this.#clusters.clear();
  }

  #opened(): void {
    this.#link.send(encodeCheckOffer(this.#deps.node));
    this.#deps.counts.add('responses');
  }

  #lost(): void {
    this.#endWait();
    this.#orders = undefined;
    this.#intervalMs = 0;
    this.#deps.counts.add('errors');
  }

  #heard(bytes: Buffer): void {
    const { counts } = this.#deps;
    counts.add('requests');
    if (this.#orders?.equals(bytes) === true) return;
    const orders = this.#open(bytes);
    if (orders === undefined) return;
    this.#orders = bytes;
    for (const order of orders.clusters) this.#take(order);
    const wanted = new Set(orders.clusters.map(({ name }) => name));
    for (const [name, cluster] of this.#clusters) {
      if (wanted.has(name)) continue;
      this.#clusters.delete(name);
      cluster.close();
    }
    counts.add('updates');
    if (orders.intervalMs === this.#intervalMs) return;
    this.#intervalMs = orders.intervalMs;
    this.#waitForNext();
  }

  #open(bytes: Buffer): CheckOrders | undefined {
    const { counts, discoverable, unknownFields } = this.#deps;
    try {
      return openCheckOrders(bytes, this.#settings.transportGeneration, discoverable().clusters(), unknownFields);
    } catch (error) {
      counts.add('errors');
      this.#warn(`a message is refused: ${errorMessage(error)}`);
      return undefined;
    }
  }

  /** One that may not be leaves what there is under its name. */
  #take({ name, settings, checks, errors, warnings }: CheckOrder): void {
    for (const warning of warnings) this.#warn(warning);
    if (settings === undefined) {
      this.#refuse(name, errors.join('; '));
      return;
    }
    const cluster = this.#clusters.get(name) ?? new DelegatedCluster(name, this.#deps.tools);
    try {
      cluster.update(settings, checks);
      this.#clusters.set(name, cluster);
    } catch (error) {
      this.#refuse(name, errorMessage(error));
    }
  }

  #refuse(name: string, reason: string): void {
    this.#deps.counts.add('errors');
    this.#warn(`cluster ${name} is not checked as asked: ${reason}`);
  }

  #warn(text: string): void {
    this.#deps.log.ofFile(FILE).warning(`health discovery server ${this.#link.server}: ${text}`);
  }

  #waitForNext(): void {
    this.#endWait();
    this.#endWait = this.#deps.clock.after(Math.max(SHORTEST_INTERVAL_MS, this.#intervalMs), () => {
      const generation = this.#link.generation;
      this.#deps.faults.run('reporting the health of hosts', async () => {
        await this.#report(generation);
        if (generation === this.#link.generation) this.#waitForNext();
      });
    });
  }

  async #report(generation: number): Promise<void> {
    // Who does not read hears of how things are then.
    if (this.#link.isBackedUp) return;
    const slice = new TimeSlice();
    const parts: Uint8Array[] = [];
    for (const cluster of [...this.#clusters.values()]) {
      parts.push(encodeClusterHealth(cluster.name, cluster.localities(), this.#settings.transportGeneration));
      if (slice.isOverNow()) await slice.rest();
    }
    if (generation !== this.#link.generation) return;
    this.#link.send(encodeHealthReport(parts));
    this.#deps.counts.add('responses');
  }
}
