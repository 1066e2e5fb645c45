// The set of listeners: makes their stats, has the workers open them, knows the addresses in use, and takes them away. Main
// thread.
//
//   put ──► WARMING ──routes and secrets there, open in all workers──► ACTIVE ──removed, replaced──► DRAINING ──last connection over──► closed
//
// One that differs from its former self in filter chains alone stays, and only connections of the chains that have gone drain.
// An operator may have listeners stop accepting, or drain before that; they stay in the set, and their connections go on.
// A successor takes over the sockets of its predecessor on addresses of both, so that nobody who connects meanwhile is refused.

import { type Address, formatAddress } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import { errorMessage, WeirError } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { removeStaleSocket } from '../../base/stale-socket.ts';
import type { Logger, Loggers } from '../../log/index.ts';
import type {
  DownstreamTlsSettings,
  DrainedListeners,
  DrainProgress,
  DrainStrategy,
  InheritedSockets,
  ListenerSettings,
  ListenerSnapshot,
  SecuredChain,
  TlsSettings,
} from '../../snapshot/index.ts';
import { LISTENER_MANAGER_STATS, LISTENER_STATS, type StatsStore } from '../../stats/index.ts';
import type { SharedMemoryOwner } from '../../wasm/shared-memory-owner.ts';
import { httpFiltersOf } from '../filters/terminal-parts.ts';
import {
  Failures,
  NO_MESSAGE,
  type RefusedResource,
  type ResourceRecord,
  type ResourceState,
} from '../resource-record.ts';
import type { ChangedContexts } from '../tls/changed-contexts.ts';
import { ActiveListener, type PutListener } from './active-listener.ts';
import type { FormerChains } from './filter-chains.ts';
import { ListenerNeeds } from './listener-needs.ts';
import type { ListenerSnapshotDependencies } from './listener-snapshot.ts';
import { ListenerSockets, type ListenerSocketsDependencies } from './listener-sockets.ts';
import { WaitingListeners } from './waiting-listeners.ts';

/** Opens listeners in the workers; WorkerPool does. */
export interface ListenerPublisher {
  openListener(
    listener: ListenerSnapshot,
    predecessor: number | null,
    inherited: InheritedSockets | null,
  ): Promise<readonly number[]>;
  stopListener(id: number, successor: number | null, drain: DrainProgress, onApplied: () => void): void;
  stopAccepting(id: number, onApplied: () => void, leavesPaths: boolean): void;
  /** @param onGone called once, when no worker has a connection of a chain that is not among those any more. */
  updateChains(listener: ListenerSnapshot, drain: DrainProgress, onGone: () => void): Promise<void>;
  secureListener(listener: ListenerSnapshot, chains: readonly SecuredChain[], onApplied: () => void): void;
  shareSockets(id: number, addressIndex: number, fromWorker?: number): Promise<readonly number[]>;
}

export interface ListenerObserver {
  /** It is about to open, or to have other chains: secrets that have come are put in their places. */
  complete(listener: ActiveListener): void;
  add(listener: ActiveListener): void;
  /** Perhaps of one that was never added. */
  remove(listener: ActiveListener): void;
}

export interface ListenerManagerDependencies
  extends Omit<ListenerSnapshotDependencies, 'globalRecord' | 'holdings'>,
    Pick<ListenerSocketsDependencies, 'inherit'> {
  readonly stats: StatsStore;
  readonly memory: SharedMemoryOwner;
  readonly workers: ListenerPublisher;
  readonly loggers: Loggers;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  /** Of the connections of a listener that has gone; they are cut behind that. */
  readonly drainMs: number;
  readonly drainStrategy: DrainStrategy;
}

/** How long, and how often, a listener is tried that is to be taken back. */
const REOPEN_MS = 100;
const REOPEN_TRIES = 100;

export class ListenerManager {
  readonly #deps: ListenerManagerDependencies;
  /** Count record of the connections of all listeners. */
  readonly #globalRecord: number;
  readonly #log: Logger;
  readonly #stats;
  readonly #listeners = new Map<string, ActiveListener>();
  readonly #waiting: WaitingListeners;
  readonly #sockets: ListenerSockets;
  readonly #warming = new Set<ActiveListener>();
  readonly #draining = new Set<ActiveListener>();
  /** Filter chains that listeners of the set have had, and that have connections. */
  #formerChains = 0;
  /** Of the set, those that drain or are stopped and have connections. */
  readonly #drained = new Set<ActiveListener>();
  /** Told when no listener waits for what it needs. */
  readonly #onNoneWaits: (() => void)[] = [];
  /** Told when what was replaced or removed, listeners and filter chains, has no connections. */
  readonly #onNoneDrains: (() => void)[] = [];
  /** Told when all are stopped and have no connections. */
  readonly #onStopped: (() => void)[] = [];
  #stoppedDirections: DrainedListeners | undefined;
  /** What undoes `leave`. */
  #takeBack: (() => Promise<void>) | undefined;
  readonly #failures = new Failures();
  /** The last of the changes that wait for one another. */
  #change: Promise<unknown> = Promise.resolve();
  #nextId = 1;
  /** Told of listeners that serve, and of those that do not any more. */
  observer: ListenerObserver | undefined;
  #version = '';

  constructor(deps: ListenerManagerDependencies) {
    this.#deps = deps;
    this.#globalRecord = deps.memory.recordAllocator.allocateCount();
    this.#log = deps.loggers.get('config').ofFile('src/control-plane/listener-manager/listener-manager.ts');
    this.#waiting = new WaitingListeners(deps.clock, () => this.#count());
    this.#sockets = new ListenerSockets(deps);
    this.#stats = deps.stats.scope('listener_manager.').allocate(LISTENER_MANAGER_STATS);
  }

  /**
   * Opens a listener of the bootstrap in every worker; one whose name is taken is left out. Several may be opened at a time.
   * @throws WeirError WEIR_LISTEN_FAILED naming the listener and the address.
   */
  async addStatic(settings: ListenerSettings, message: Uint8Array = NO_MESSAGE): Promise<void> {
    if (this.#isRefused(settings)) return;
    const { name } = settings;
    if (this.#waiting.find(name) || this.#all().some((other) => other.name === name)) {
      this.#log.warning(`a second listener ${name} is left out`);
      return;
    }
    const given = { settings, message, version: '', addedViaApi: false };
    const needs = ListenerNeeds.of(settings, this.#deps);
    if (needs === undefined) await this.#open(given);
    else {
      const waiting = this.#waiting.add(given, needs);
      await needs.whenMet();
      if (!this.#waiting.end(waiting)) return;
      await this.#open(given).finally(() => needs.release());
    }
    this.#order();
  }

  /**
   * Takes in a listener: a new one, or a successor of the one of its name, whose connections drain. Nothing happens to one that
   * is as it was. Changes wait for one another.
   * @param message what the settings were made of.
   * @param addedViaApi false for one of a bootstrap that takes the place of the first.
   * @returns false for the name of a listener of the other origin, which stays as it is, and where listeners have been stopped.
   * One whose routes, filters or secrets have to be waited for is taken in when they are there: of those that discovery brings nobody waits for that, and
   * should they fail, that is told of by `failures`.
   * @throws WeirError WEIR_LISTEN_FAILED or WEIR_SHARED_MEMORY_FULL; all is as before then.
   */
  put(
    settings: ListenerSettings,
    version: string,
    message: Uint8Array = NO_MESSAGE,
    addedViaApi = true,
  ): Promise<boolean> {
    const given = { settings, message, version, addedViaApi };
    const needs = this.#mayCome(given) ? ListenerNeeds.of(settings, this.#deps) : undefined;
    if (needs === undefined) return this.#next(() => this.#put(given));
    const waiting = this.#waiting.add(given, needs);
    const done = needs.whenMet().then(() =>
      this.#next(async () => {
        // There is another one of its name by now.
        if (!this.#waiting.end(waiting)) return true;
        return await this.#put(given).finally(() => needs.release());
      }),
    );
    const missing = needs.targets;
    if (!addedViaApi || missing.length === 0) return done;
    this.#log.info(`listener ${settings.name} waits for ${missing.join(', ')}`);
    done.catch((error) => this.#log.warning(errorMessage(error)));
    return Promise.resolve(true);
  }

  /** @param addedViaApi its origin, as for `put`. @returns false when there is no such listener of this origin. */
  remove(name: string, addedViaApi = true): Promise<boolean> {
    const waiting = this.#waiting.find(name);
    const isAwaited = waiting?.given.addedViaApi === addedViaApi && this.#waiting.end(waiting);
    if (isAwaited) waiting.needs.release();
    return this.#next(async () => (await this.#remove(name, addedViaApi)) || isAwaited);
  }

  /** Resolves when no listener waits for what it needs, and those that did are open. */
  async whenNoneWaits(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onNoneWaits.push(resolve);
      this.#count();
    });
    await this.#next(async () => {});
  }

  /** What a listener waits for that is not open yet, as listings name it; empty for any other. */
  missing(name: string): readonly string[] {
    return this.#waiting.find(name)?.needs.targets ?? [];
  }

  #mayCome({ settings, addedViaApi }: PutListener): boolean {
    const active = this.#listeners.get(settings.name);
    return active === undefined || active.addedViaApi === addedViaApi;
  }

  /** Resolves when no listener or filter chain that was replaced or removed has a connection any more. */
  whenNoneDrains(): Promise<void> {
    return new Promise((resolve) => {
      this.#onNoneDrains.push(resolve);
      this.#count();
    });
  }

  /** Resolves when no listener accepts any more, and the last connection of each has ended. */
  whenStopped(): Promise<void> {
    return new Promise((resolve) => {
      this.#onStopped.push(resolve);
      this.#count();
    });
  }

  /** Listeners are about to stop accepting: they count as draining. */
  beginDrain(which: DrainedListeners): void {
    for (const listener of this.#listeners.values()) {
      if (!isAmong(which, listener)) continue;
      this.#drained.add(listener);
      if (listener.accepting === 'yes') listener.accepting = 'draining';
    }
    this.#count();
  }

  /** Descriptors of all sockets that accept on an address, for another process; the caller's, none where nobody does. */
  async share(address: Address): Promise<readonly number[]> {
    return await this.#sockets.share(address, this.#listeners.values());
  }

  /** Has listeners stop accepting; their connections go on. From now on there will be no other listeners of that direction. */
  stopAccepting(which: DrainedListeners): void {
    if (this.#stoppedDirections !== 'all') this.#stoppedDirections = which;
    // One that is being opened comes into the set first.
    this.#begin('stopping listeners', async () => this.#stopAccepting(which, false));
  }

  /** Has all stop accepting, because another process accepts on the same sockets, to which the paths of unix sockets are left. */
  leave(): void {
    const stoppedBefore = this.#stoppedDirections;
    this.#stoppedDirections = 'all';
    this.#begin('leaving listeners', async () => {
      const left = this.#stopAccepting('all', true);
      this.#takeBack = async () => {
        this.#stoppedDirections = stoppedBefore;
        await Promise.all(left.map((listener) => this.#reopen(listener)));
      };
    });
  }

  /** The process that they were left to is gone: opens them again. */
  takeBack(): Promise<void> {
    return this.#next(async () => {
      const takeBack = this.#takeBack;
      this.#takeBack = undefined;
      await takeBack?.();
    });
  }

  /** A successor of one that accepts no more. The system may not have closed the sockets of a lost process yet. */
  async #reopen(former: ActiveListener, tries = 1): Promise<void> {
    if (this.#listeners.get(former.name) !== former) return;
    try {
      await this.#open(former);
    } catch (error) {
      if (tries === REOPEN_TRIES) {
        this.#log.error(errorMessage(error));
        return;
      }
      this.#deps.clock.after(REOPEN_MS, () => this.#next(() => this.#reopen(former, tries + 1)));
    }
  }

  #stopAccepting(which: DrainedListeners, leavesPaths: boolean): readonly ActiveListener[] {
    const listeners = [...this.#listeners.values()].filter(
      (listener) => isAmong(which, listener) && listener.accepting !== 'stopped',
    );
    for (const listener of listeners) {
      // One that fails shall hold up neither the others nor their coming back.
      this.#deps.faults.run(`stopping listener ${listener.name}`, () => this.#stopOne(listener, leavesPaths));
    }
    this.#count();
    return listeners;
  }

  #stopOne(listener: ActiveListener, leavesPaths: boolean): void {
    listener.accepting = 'stopped';
    this.#drained.add(listener);
    this.#stats.add('listener_stopped');
    const onGone = (): void => {
      if (this.#drained.delete(listener)) this.#log.info(`the last connection of listener ${listener.name} has ended`);
      this.#count();
    };
    this.#deps.workers.stopAccepting(listener.snapshot.id, onGone, leavesPaths);
    this.#log.info(`listener ${listener.name} accepts no more connections`);
  }

  #isRefused({ name, trafficDirection }: ListenerSettings): boolean {
    const stopped = this.#stoppedDirections;
    if (stopped === undefined || (stopped === 'inbound' && trafficDirection !== 'INBOUND')) return false;
    const why = `because listeners in the traffic direction ${trafficDirection} are stopped`;
    this.#log.debug(`listener ${name} can not be added ${why}`);
    return true;
  }

  /** All that there are, and those that could not be had. */
  dump(): ResourceRecord[] {
    const record = (listener: ActiveListener, state: ResourceState): ResourceRecord => {
      const { name, message, addedViaApi, version, updatedMs } = listener;
      return { name, message, addedViaApi, version, updatedMs, state, error: '' };
    };
    return [
      ...[...this.#listeners.values()].map((listener) => record(listener, 'active')),
      ...[...this.#warming].map((listener) => record(listener, 'warming')),
      ...this.#waiting.dump(),
      ...[...this.#draining].map((listener) => record(listener, 'draining')),
      ...this.#failures.values(),
    ];
  }

  /** One that discovery has brought may not be; the one before it stays. */
  refuse(refused: RefusedResource, version: string): void {
    // It would have been left out in any case.
    if (this.#listeners.get(refused.name)?.addedViaApi === false) return;
    this.#noteFailure(refused, version, true);
  }

  /** Nothing of a version that discovery has brought was refused. */
  accept(version: string): void {
    this.#version = version;
  }

  /** Those that discovery has brought, and those that it could not. */
  *discoveredNames(): Iterable<string> {
    const names = new Set<string>();
    for (const { name, addedViaApi } of this.#listeners.values()) if (addedViaApi) names.add(name);
    for (const { name, addedViaApi } of this.#failures.values()) if (addedViaApi) names.add(name);
    for (const name of this.#waiting.discoveredNames()) names.add(name);
    yield* names;
  }

  /** Those that could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.#failures.values();
  }

  /** Version of the last accepted listener discovery update; empty before the first. */
  get version(): string {
    return this.#version;
  }

  /** All static listeners are open in all workers. */
  markWorkersStarted(): void {
    this.#stats.set('workers_started', 1);
  }

  listeners(): Iterable<ActiveListener> {
    return this.#listeners.values();
  }

  /** What secures the connections of listeners. */
  *tlsContexts(): Iterable<TlsSettings> {
    for (const { snapshot } of this.#listeners.values()) {
      for (const { tls } of snapshot.filterChains) if (tls !== undefined) yield tls.settings;
      if (snapshot.defaultFilterChain?.tls !== undefined) yield snapshot.defaultFilterChain.tls.settings;
    }
  }

  /** Has handshakes go by other settings. @param changed by filter chain, the default one last. @param onApplied called once, when they do in every worker. */
  secure(listener: ActiveListener, changed: ChangedContexts<DownstreamTlsSettings>, onApplied: () => void): void {
    this.#deps.workers.secureListener(listener.snapshot, listener.secure(changed), onApplied);
  }

  /** Under which POST /tap has filters of these listeners record. */
  tapConfigIds(): ReadonlySet<string> {
    const listeners = [...this.#listeners.values()];
    const filters = listeners.flatMap(({ settings: { filterChains, defaultFilterChain } }) =>
      [...filterChains, ...(defaultFilterChain ? [defaultFilterChain] : [])].flatMap(({ filter }) =>
        httpFiltersOf(filter),
      ),
    );
    return new Set(filters.flatMap(({ tapConfigId }) => tapConfigId ?? []));
  }

  /** Open downstream connections over all listeners and workers. */
  activeConnections(): number {
    const listeners = [...this.#listeners.values(), ...this.#warming, ...this.#draining];
    // Several listeners may share one.
    const cells = new Set(
      listeners.map(({ snapshot }) => snapshot.statBlock + LISTENER_STATS.index.downstream_cx_active),
    );
    return [...cells].reduce((total, cell) => total + this.#deps.stats.cells.total(cell), 0);
  }

  #noteFailure({ name, message, error }: RefusedResource, version: string, addedViaApi: boolean): void {
    const updatedMs = this.#deps.clock.wallMs();
    this.#failures.note({ name, message, addedViaApi, version, updatedMs, error });
  }

  /** For changes whose end nobody awaits. */
  #begin(where: string, change: () => Promise<unknown>): void {
    this.#deps.faults.run(where, () => this.#next(change));
  }

  #next<Result>(change: () => Promise<Result>): Promise<Result> {
    const done = this.#change.then(change);
    this.#change = done.catch(() => {});
    return done;
  }

  async #put(given: PutListener): Promise<boolean> {
    const { settings, message, version, addedViaApi } = given;
    const { name } = settings;
    if (this.#isRefused(settings)) return false;
    const active = this.#listeners.get(name);
    if (active !== undefined && active.addedViaApi !== addedViaApi) return false;
    if (active?.isSame(settings)) {
      active.message = message;
      active.version = version;
      active.updatedMs = this.#deps.clock.wallMs();
    } else {
      try {
        if (active?.accepting !== 'stopped' && active?.isSameApartFromChains(settings)) {
          await this.#updateChains(active, given);
        } else await this.#open(given);
      } catch (error) {
        this.#noteFailure({ name, message, error: errorMessage(error) }, version, addedViaApi);
        throw error;
      }
    }
    this.#failures.forget(name);
    if (addedViaApi) this.#version = version;
    return true;
  }

  async #remove(name: string, addedViaApi: boolean): Promise<boolean> {
    const listener = this.#listeners.get(name);
    if (listener !== undefined && listener.addedViaApi !== addedViaApi) return false;
    this.#failures.forget(name);
    if (listener === undefined) return false;
    this.#listeners.delete(name);
    this.#stats.add('listener_removed');
    this.#stop(listener, null);
    this.#log.info(`listener ${name} is removed`);
    return true;
  }

  /** Sockets, limits and the connections of chains that are as they were stay; those of the others drain. */
  async #updateChains(listener: ActiveListener, given: PutListener): Promise<void> {
    this.#stats.add('listener_modified');
    let former: FormerChains;
    try {
      former = listener.replaceChains(given);
    } catch (error) {
      this.#stats.add('listener_create_failure');
      throw failure(given.settings, error);
    }
    this.observer?.complete(listener);
    // What secures its chains may be in other files now.
    this.observer?.remove(listener);
    this.observer?.add(listener);
    this.#formerChains += former.count;
    this.#count();
    await this.#deps.workers.updateChains(listener.snapshot, this.#newDrain, () => {
      former.release();
      this.#formerChains -= former.count;
      this.#count();
    });
    this.#stats.add('listener_in_place_updated');
    this.#log.info(`listener ${listener.name} has other filter chains; ${former.count} of the former drain`);
  }

  async #open(given: PutListener): Promise<void> {
    const { settings } = given;
    const { name, addresses } = settings;
    const former = this.#listeners.get(name);
    let listener: ActiveListener | undefined;
    this.#stats.add(former === undefined ? 'listener_added' : 'listener_modified');
    try {
      this.#sockets.check(settings, this.#all(), former);
      listener = new ActiveListener(this.#nextId++, given, {
        ...this.#deps,
        globalRecord: this.#globalRecord,
      });
      this.observer?.complete(listener);
      this.#warming.add(listener);
      this.#count();
      const inherited = await this.#sockets.takenOver(settings, former);
      for (const path of this.#sockets.freePaths(settings, former, inherited)) await removeStaleSocket(path);
      const ports = await this.#deps.workers.openListener(listener.snapshot, former?.snapshot.id ?? null, inherited);
      listener.addresses = addresses.map((address, index) => withPort(address, ports[index]!));
    } catch (error) {
      this.#stats.add('listener_create_failure');
      if (listener) this.#stop(listener, null);
      throw failure(settings, error);
    }
    this.#warming.delete(listener);
    this.#listeners.set(name, listener);
    this.observer?.add(listener);
    this.#stats.add('listener_create_success', this.#deps.concurrency);
    if (former) this.#stop(former, listener.snapshot.id);
    this.#count();
    const does = settings.bindsToPort ? 'accepts on' : 'is handed what is meant for';
    this.#log.info(`listener ${name} ${does} ${listener.addresses.map(formatAddress).join(', ')}`);
  }

  #stop(listener: ActiveListener, successor: number | null): void {
    this.observer?.remove(listener);
    this.#warming.delete(listener);
    this.#drained.delete(listener);
    this.#draining.add(listener);
    this.#count();
    this.#deps.workers.stopListener(listener.snapshot.id, successor, this.#newDrain, () => {
      this.#draining.delete(listener);
      listener.close();
      this.#count();
    });
  }

  get #newDrain(): DrainProgress {
    const { drainMs: durationMs, drainStrategy: strategy } = this.#deps;
    return { strategy, elapsedMs: 0, durationMs };
  }

  /** Listeners that were opened at a time are listed as they were asked for, whichever was open first. */
  #order(): void {
    const inOrder = [...this.#listeners].sort(([, one], [, other]) => one.snapshot.id - other.snapshot.id);
    this.#listeners.clear();
    for (const [name, listener] of inOrder) this.#listeners.set(name, listener);
  }

  /** Those that serve or are being opened. */
  #all(): ActiveListener[] {
    return [...this.#listeners.values(), ...this.#warming];
  }

  #count(): void {
    this.#stats.set('total_listeners_active', this.#listeners.size);
    this.#stats.set('total_listeners_warming', this.#warming.size + this.#waiting.count);
    if (this.#waiting.count === 0) for (const tell of this.#onNoneWaits.splice(0)) tell();
    this.#stats.set('total_listeners_draining', this.#draining.size + this.#drained.size);
    this.#stats.set('total_filter_chains_draining', this.#formerChains);
    if (this.#draining.size === 0 && this.#formerChains === 0) {
      for (const tell of this.#onNoneDrains.splice(0)) tell();
    }
    if (this.#onStopped.length === 0 || this.#warming.size + this.#draining.size + this.#drained.size > 0) return;
    if (![...this.#listeners.values()].every(({ accepting }) => accepting === 'stopped')) return;
    for (const tell of this.#onStopped.splice(0)) tell();
  }
}

function failure({ name, addresses }: ListenerSettings, cause: unknown): WeirError {
  const text = `error adding listener '${formatAddress(addresses[0])}' (${name}): ${errorMessage(cause)}`;
  return new WeirError('WEIR_LISTEN_FAILED', text, { source: 'config', cause });
}

function isAmong(which: DrainedListeners, { settings }: ActiveListener): boolean {
  return which === 'all' || settings.trafficDirection === 'INBOUND';
}

function withPort(address: Address, port: number): Address {
  return address.kind === 'ip' ? { ...address, port } : address;
}
