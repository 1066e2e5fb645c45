// This process as one of a row that hot restarts make: it may follow a parent, and a child may follow it. Made before the
// configuration is read, so that two processes of the same place never load anything beside each other. Main thread.

import type { Server as NetServer, Socket } from 'node:net';
import type { Address } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import { WeirError } from '../../base/errors.ts';
import { SystemCalls } from '../../base/system-calls.ts';
import { FIRST_OF_ALL, type RestartFacts, type Server, TicketSecret } from '../../control-plane/index.ts';
import type { Logger } from '../../log/index.ts';
import { StatImport } from '../../stats/index.ts';
import { ChildProcess, type Inheritance } from './child-process.ts';
import { type EpochPlace, listenAsParent } from './domain-sockets.ts';
import { ParentProcess } from './parent-process.ts';
import { isTrusted } from './peer.ts';

export interface EpochOptions {
  readonly place: EpochPlace;
  readonly parentShutdownMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Begins the clean shutdown of this process. */
  readonly quit: () => void;
  /** This process serves again, after another had taken over. */
  readonly onServing: () => void;
}

/** The admin interface, as far as it can be handed over. */
export interface YieldingAdmin {
  /** Accepts no more. @returns a descriptor of its socket, the caller's, where it has that address. */
  yield(address: Address | null): number | undefined;
  resume(): void;
  /** The socket that came from another process is this one's alone. */
  own(): void;
}

/** How long the end of this process waits for that of its parent, which tells what it has counted last. */
const PARENT_END_LIMIT_MS = 13_000;

export class Epoch {
  readonly #options: EpochOptions;
  readonly #names: NetServer;
  readonly #parent: ParentProcess | undefined;
  readonly #startMs: number;
  readonly #ticketSecret: TicketSecret;
  #calls: SystemCalls | undefined;
  #child: ChildProcess | undefined;
  #cancelTermination: (() => void) | undefined;
  /** Once it is live, and the parent drains. */
  #server: Server | undefined;
  #admin: YieldingAdmin | undefined;
  #isEnding = false;
  /** Monotonic: when its end is not waited for any more. */
  #parentIsLate: number | undefined;

  /** @throws WeirError WEIR_HOT_RESTART when the place is taken, or the process before does not let this one take over. */
  static async begin(options: EpochOptions): Promise<Epoch> {
    const { place } = options;
    const names = await listenAsParent(place);
    try {
      const calls = place.epoch === 0 ? undefined : openSystemCalls();
      const parent = calls && (await ParentProcess.connect({ ...options, calls }));
      return new Epoch(options, names, calls, parent);
    } catch (error) {
      names.close();
      throw error;
    }
  }

  private constructor(
    options: EpochOptions,
    names: NetServer,
    calls: SystemCalls | undefined,
    parent: ParentProcess | undefined,
  ) {
    this.#options = options;
    this.#names = names;
    this.#calls = calls;
    this.#parent = parent;
    this.#ticketSecret = new TicketSecret(parent?.ticketSecret);
    this.#startMs = options.clock.monotonicMs();
    names.on('connection', (socket) => this.#onConnection(socket));
  }

  get baseId(): number {
    return this.#options.place.baseId;
  }

  /** For a server that is made now. */
  get restart(): RestartFacts {
    const { place } = this.#options;
    const parent = this.#parent;
    const ticketSecret = this.#ticketSecret;
    if (parent === undefined) return { ...FIRST_OF_ALL, epoch: place.epoch, ticketSecret };
    return {
      epoch: place.epoch,
      generation: this.#generation,
      earlierMs: this.#runMs,
      parentLoad: () => parent.load,
      inherit: (address) => parent.inherit(address),
      ticketSecret,
    };
  }

  /** The configuration is a good one: the parent gives up its admin interface. @returns as ParentProcess.stopAdmin. */
  async stopAdminOfParent(address: Address | undefined): Promise<number | undefined> {
    return await this.#parent?.stopAdmin(address);
  }

  /** The server is live: takes over what the parent counts, and has it drain. From now on there may be a child. */
  async takeOver(server: Server, admin: YieldingAdmin | undefined): Promise<void> {
    const { clock, log, parentShutdownMs, place } = this.#options;
    const parent = this.#parent;
    if (parent?.isThere) {
      parent.receiveStats(new StatImport(server.stats));
      await parent.pullStats();
      // The last flush of all waits for what the parent counts last.
      const stopPulling = server.addFlushStep(() => (this.#isEnding ? this.#parentEnds() : parent.pullStats()));
      void parent.gone.then(() => {
        stopPulling();
        log.info('hot restart: the process before this one is gone');
      });
      await parent.drain();
      log.info(`hot restart: has taken over from the process of restart epoch ${place.epoch - 1}`);
      this.#cancelTermination = clock.after(parentShutdownMs, () => this.#terminateParent());
    }
    server.workers.ownSockets();
    admin?.own();
    this.#server = server;
    this.#admin = admin;
  }

  /** This process ends. One that has taken over takes its parent along; one that has not leaves it as it was. */
  async beginEnd(): Promise<void> {
    this.#isEnding = true;
    if (this.#server !== undefined) await this.#terminateParent();
  }

  /** Nothing is counted any more. */
  async end(): Promise<void> {
    this.#cancelTermination?.();
    if (this.#server !== undefined) await this.#parentEnds();
    await this.#child?.finish();
    this.#names.close();
  }

  /** It has been told to, and tells what it has counted before it does; or has had its time. */
  async #parentEnds(): Promise<void> {
    if (!this.#parent?.isThere) return;
    this.#parentIsLate ??= this.#options.clock.monotonicMs() + PARENT_END_LIMIT_MS;
    const late = Promise.withResolvers<void>();
    const restMs = Math.max(this.#parentIsLate - this.#options.clock.monotonicMs(), 0);
    const cancel = this.#options.clock.after(restMs, late.resolve);
    await Promise.race([this.#parent.gone, late.promise]);
    cancel();
  }

  get #generation(): number {
    return (this.#parent?.generation ?? 0) + 1;
  }

  get #runMs(): number {
    return (this.#parent?.runMs ?? 0) + this.#options.clock.monotonicMs() - this.#startMs;
  }

  async #terminateParent(): Promise<void> {
    this.#cancelTermination?.();
    await this.#parent?.terminate();
  }

  #onConnection(socket: Socket): void {
    const { log, parentShutdownMs, place, clock } = this.#options;
    this.#calls ??= openSystemCalls();
    const calls = this.#calls;
    if (!isTrusted(socket, calls)) {
      log.warning('hot restart: a process of another user has been refused');
      socket.destroy();
      return;
    }
    const child: ChildProcess = new ChildProcess(
      {
        place,
        calls,
        clock,
        log,
        parentShutdownMs,
        refusal: () => this.#refusal(),
        inheritance: () => this.#inheritance(),
        onWelcome: () => {
          this.#child = child;
        },
        onGone: () => {
          if (this.#child === child) this.#child = undefined;
        },
      },
      socket,
    );
  }

  #refusal(): string | undefined {
    if (this.#isEnding) return 'previous process is about to end';
    if (this.#server === undefined) return 'previous process is still initializing';
    return this.#child === undefined ? undefined : 'another process takes over from the previous one already';
  }

  #inheritance(): Inheritance {
    const server = this.#server!;
    return {
      stats: server.stats,
      load: () => server.load,
      generation: () => this.#generation,
      runMs: () => this.#runMs,
      ticketSecret: () => this.#ticketSecret.bytes,
      begin: () => void this.#terminateParent(),
      stopAdmin: (address) => this.#admin?.yield(address),
      resumeAdmin: () => this.#admin?.resume(),
      restSinks: (isResting) => server.restSinks(isResting),
      shareSockets: (address) => server.listenerManager.share(address),
      drain: () => server.giveWay(),
      takeBack: async () => {
        await server.takeBack();
        this.#options.onServing();
      },
      terminate: this.#options.quit,
    };
  }
}

function openSystemCalls(): SystemCalls {
  const calls = SystemCalls.open();
  if (calls !== undefined) return calls;
  throw new WeirError('WEIR_HOT_RESTART', 'hot restart needs Linux and a Node with its foreign function interface');
}
