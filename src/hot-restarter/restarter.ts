// Keeps a row of processes that take over from one another: one is started at the beginning, and a further one with each order
// to restart. Which of them died tells what to do.
//
//   starting ──said that it is ready──▶ newest ──the next one is ready──▶ older ──▶ ended by its successor
//      └──ended──▶ the newest serves on    │  ▲                             │
//                                          │  └──the newest failed, and it says that it is ready once more
//                                          └──ended by itself──▶ all end, with its failure, unless an older one says so in time

import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { Clock } from '../base/clock.ts';

export interface RestarterOptions {
  readonly command: string;
  /** What is started under that name; by default what the name means. */
  readonly file?: string | undefined;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly say: (text: string) => void;
  /** The process that is to serve is ready, at the beginning and after each restart; or a restart has come to nothing. */
  readonly onSettled: (how: string) => void;
}

interface Member {
  readonly epoch: number;
  readonly process: ChildProcess;
  isReady: boolean;
  /** Told to open its log files anew before it was ready. */
  mustReopen: boolean;
  /** One that it had taken over from serves again. */
  isLost: boolean;
}

/** Descriptor on which a process says that it is ready. */
const READY_DESCRIPTOR = 3;
/** More have no names to meet under. */
const MOST_MEMBERS = 3;
/** How long an older process has to say that it serves again. */
const TAKE_BACK_LIMIT_MS = 15_000;
/** After this, processes that were told to end are killed. */
const END_LIMIT_MS = 30_000;

export class HotRestarter {
  readonly #options: RestarterOptions;
  readonly #members = new Set<Member>();
  readonly #ended = Promise.withResolvers<number>();
  #epoch = 0;
  #isRestartWanted = false;
  /** How the last start or restart has come out. */
  #outcome = '';
  /** Set while nobody serves, and an older process may take that up again. */
  #cancelGivingUp: (() => void) | undefined;
  /** Undefined until the end has begun. */
  #exitCode: number | undefined;

  constructor(options: RestarterOptions) {
    this.#options = options;
  }

  /** Starts the first. @returns the exit code, when the last has ended. */
  run(): Promise<number> {
    this.#start();
    return this.#ended.promise;
  }

  /** Starts the next, as soon as the last one is ready and there is a place for it. */
  restart(): void {
    if (this.#exitCode !== undefined) return;
    this.#isRestartWanted = true;
    this.#restartIfPossible();
  }

  /** Has all open their log files anew. The signal would end one that has only just been started, so that one gets it later. */
  reopenLogs(): void {
    for (const member of this.#members) {
      if (member.isReady) member.process.kill('SIGUSR1');
      else member.mustReopen = true;
    }
  }

  /** Tells all to end. */
  end(): void {
    if (this.#exitCode !== undefined) return;
    this.#exitCode = 0;
    this.#signalAll('SIGTERM');
    this.#options.clock.after(END_LIMIT_MS, () => {
      this.#options.say('processes that have not ended are killed');
      this.#signalAll('SIGKILL');
    });
  }

  #signalAll(signal: NodeJS.Signals): void {
    for (const { process } of this.#members) process.kill(signal);
  }

  #start(): void {
    const { command, file = command, args, env, say } = this.#options;
    const epoch = this.#epoch;
    const child = spawn(file, args, {
      argv0: command,
      env: { ...env, RESTART_EPOCH: String(epoch), WEIR_READY_FD: String(READY_DESCRIPTOR) },
      stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    });
    const member: Member = { epoch, process: child, isReady: false, mustReopen: false, isLost: false };
    this.#members.add(member);
    const ready = child.stdio[READY_DESCRIPTOR] as Readable;
    ready.on('error', () => {});
    ready.on('data', () => this.#onReady(member));
    child.once('error', (error) => {
      say(`cannot start ${command}: ${error.message}`);
      if (child.pid === undefined) this.#onEnd(member, 'it could not be started', false);
    });
    child.once('exit', (code, signal) =>
      this.#onEnd(member, signal === null ? `code ${code}` : `signal ${signal}`, code === 0),
    );
    if (child.pid !== undefined) say(`restart epoch ${epoch} is process ${child.pid}`);
  }

  #onReady(member: Member): void {
    if (this.#exitCode !== undefined) return;
    member.isReady = true;
    this.#cancelGivingUp?.();
    this.#cancelGivingUp = undefined;
    this.#epoch = member.epoch + 1;
    for (const later of this.#members) if (later.isReady && later.epoch > member.epoch) later.isLost = true;
    if (member.mustReopen) member.process.kill('SIGUSR1');
    member.mustReopen = false;
    this.#conclude(`restart epoch ${member.epoch} is ready`);
    this.#settle();
  }

  #onEnd(member: Member, how: string, isClean: boolean): void {
    const { say } = this.#options;
    const isNewest =
      ![...this.#members].some(({ epoch, isReady }) => epoch > member.epoch && isReady) && !member.isLost;
    this.#members.delete(member);
    say(`the process of restart epoch ${member.epoch} has ended: ${how}`);
    if (this.#cancelGivingUp !== undefined && ![...this.#members].some(({ isReady }) => isReady)) this.#giveUp();
    else if (this.#exitCode === undefined && !isClean) this.#onFailure(member, isNewest);
    if (this.#members.size > 0) {
      if (this.#exitCode === undefined) this.#settle();
      return;
    }
    this.#ended.resolve(this.#exitCode ?? 0);
  }

  #onFailure(member: Member, isNewest: boolean): void {
    const { say, clock } = this.#options;
    const serves = [...this.#members].some(({ isReady }) => isReady);
    if (serves && !member.isReady)
      this.#conclude(`restart epoch ${member.epoch} has not taken over; the process before it serves on`);
    else if (serves && member.isLost) say('the process before it serves again');
    else if (serves && !isNewest) say('it had been taken over from already');
    else if (serves) {
      say('the process before it is to serve again');
      this.#cancelGivingUp ??= clock.after(TAKE_BACK_LIMIT_MS, () => this.#giveUp());
    } else this.#giveUp();
  }

  #conclude(text: string): void {
    this.#outcome = text;
    this.#options.say(text);
  }

  #giveUp(): void {
    this.#cancelGivingUp?.();
    this.#cancelGivingUp = undefined;
    this.#exitCode = 1;
    this.#options.say('nobody serves any more, all others are killed');
    this.#signalAll('SIGKILL');
  }

  #settle(): void {
    if (this.#cancelGivingUp !== undefined) return;
    const isStarting = [...this.#members].some(({ isReady }) => !isReady);
    if (!isStarting && !this.#isRestartWanted) this.#options.onSettled(this.#outcome);
    this.#restartIfPossible();
  }

  #restartIfPossible(): void {
    if (!this.#isRestartWanted || this.#cancelGivingUp !== undefined || this.#members.size >= MOST_MEMBERS) return;
    if ([...this.#members].some(({ isReady }) => !isReady)) return;
    this.#isRestartWanted = false;
    this.#start();
  }
}
