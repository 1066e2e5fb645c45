// The process that takes over from this one, seen from this one: what it asks for, step by step.
//
//   serving ──stop-admin──▶ yielding ──drain──▶ drained ──terminate──▶ the process ends
//      ◀────child gone─────────┘                  │
//      ◀────child gone, and its process with it───┤
//                                                 └──it hangs──▶ the process ends after its own parent shutdown time
//
// Questions are answered one after the other.

import type { Socket } from 'node:net';
import type { Address } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { SystemCalls } from '../../base/system-calls.ts';
import { HOT_RESTART_VERSION } from '../../base/version.ts';
import type { ParentLoad } from '../../control-plane/index.ts';
import type { Logger } from '../../log/index.ts';
import { StatExport, type StatsStore } from '../../stats/index.ts';
import { sendDescriptors } from './descriptor-socket.ts';
import { type EpochPlace, isLeft } from './domain-sockets.ts';
import type { Answer, Numbered, Question } from './messages.ts';
import { otherVersion } from './parent-process.ts';
import { Peer } from './peer.ts';

/** What this process gives up, piece by piece. */
export interface Inheritance {
  readonly stats: StatsStore;
  load(): ParentLoad;
  /** How many processes have followed one another, this one with them, and for how long. */
  generation(): number;
  runMs(): number;
  ticketSecret(): Uint8Array;
  /** A successor is about to take over: this process's own parent has to leave. */
  begin(): void;
  /** Closes the admin interface, for now. @returns a descriptor of its socket, the caller's, where the address is its. */
  stopAdmin(address: Address | null): number | undefined;
  resumeAdmin(): void;
  restSinks(isResting: boolean): void;
  /** The caller's. */
  shareSockets(address: Address): Promise<readonly number[]>;
  drain(): void;
  /** Resolves when what `drain` has given up is this process's again. */
  takeBack(): Promise<void>;
  terminate(): void;
}

export interface ChildProcessParts {
  /** Of this process. */
  readonly place: EpochPlace;
  readonly calls: SystemCalls;
  readonly clock: Clock;
  readonly log: Logger;
  /** Why nobody can take over now; undefined when somebody can. */
  readonly refusal: () => string | undefined;
  readonly inheritance: () => Inheritance;
  /** After this, a process that has been drained ends by itself when there is nobody to end it. */
  readonly parentShutdownMs: number;
  /** It has begun to take over. */
  readonly onWelcome: () => void;
  /** Only of one that was welcome before. */
  readonly onGone: () => void;
}

type State = 'new' | 'welcome' | 'yielding' | 'drained' | 'terminated';

/** A process that has not gone this long after its connection is still there. */
const CHILD_END_LIMIT_MS = 5_000;

export class ChildProcess {
  readonly #parts: ChildProcessParts;
  readonly #peer: Peer;
  #state: State = 'new';
  #drainedMs = 0;
  #export: StatExport | undefined;
  /** The last of the answers that wait for one another. */
  #work: Promise<void> = Promise.resolve();

  constructor(parts: ChildProcessParts, socket: Socket) {
    this.#parts = parts;
    this.#peer = new Peer(socket, {
      onMessage: (message) => this.#queue(() => this.#answer(message as Numbered<Question>)),
      onGone: () => this.#queue(() => this.#onGone()),
    });
  }

  /** This process ends, nothing is counted any more: the child gets what it has not been told of. */
  async finish(): Promise<void> {
    await this.#work;
    if (this.#export !== undefined) await this.#tellStats(0);
    await this.#peer.end();
  }

  #queue(work: () => Promise<void>): void {
    this.#work = this.#work.then(work).catch((error) => {
      this.#parts.log.error(`hot restart: ${errorMessage(error)}`);
      void this.#peer.end();
    });
  }

  async #answer(question: Numbered<Question>): Promise<void> {
    const { id } = question;
    if (question.type === 'stats') await this.#tellStats(id);
    else await this.#peer.send({ ...(await this.#answerTo(question)), id });
  }

  async #answerTo(question: Exclude<Question, { type: 'stats' }>): Promise<Answer> {
    const { inheritance, log } = this.#parts;
    if (question.type === 'hello') return this.#welcome(question);
    if (this.#state === 'new') return { type: 'refused', reason: 'say hello first' };
    const given = inheritance();
    switch (question.type) {
      case 'stop-admin': {
        this.#state = 'yielding';
        given.begin();
        given.restSinks(true);
        const descriptor = given.stopAdmin(question.address);
        return this.#hand(descriptor === undefined ? [] : [descriptor], question.token);
      }
      case 'sockets':
        return this.#hand(await given.shareSockets(question.address), question.token);
      case 'drain':
        this.#state = 'drained';
        this.#drainedMs = this.#parts.clock.monotonicMs();
        log.info('hot restart: the next process has taken over, draining');
        given.drain();
        return { type: 'done' };
      case 'terminate':
        this.#state = 'terminated';
        log.info('hot restart: the next process ends this one');
        given.terminate();
        return { type: 'done' };
      default:
        return { type: 'unknown' };
    }
  }

  #welcome({ version, epoch }: Extract<Question, { type: 'hello' }>): Answer {
    const { refusal, place, log, inheritance, onWelcome } = this.#parts;
    const reason = version === HOT_RESTART_VERSION ? refusal() : otherVersion(HOT_RESTART_VERSION, version).message;
    if (reason !== undefined) return { type: 'refused', reason };
    log.info(`hot restart: the process of restart epoch ${epoch} starts, to take over from epoch ${place.epoch}`);
    this.#state = 'welcome';
    onWelcome();
    const given = inheritance();
    return {
      type: 'welcome',
      version: HOT_RESTART_VERSION,
      generation: given.generation(),
      runMs: given.runMs(),
      ticketSecret: Buffer.from(given.ticketSecret()).toString('base64'),
    };
  }

  #hand(descriptors: readonly number[], token: string): Answer {
    const { calls, log } = this.#parts;
    if (descriptors.length > 0 && !sendDescriptors(calls, this.#childPlace, token, descriptors))
      log.error('hot restart: sockets could not be sent to the next process');
    for (const descriptor of descriptors) calls.close(descriptor);
    return { type: 'descriptors', count: descriptors.length };
  }

  async #tellStats(id: number): Promise<void> {
    const { stats, load } = this.#parts.inheritance();
    this.#export ??= new StatExport(stats);
    const batches = this.#export.batches(this.#state === 'drained');
    for await (const batch of batches) await this.#peer.send({ type: 'stat-batch', batch, id });
    await this.#peer.send({ type: 'stats-end', load: load(), id });
  }

  async #onGone(): Promise<void> {
    const { log, onGone } = this.#parts;
    onGone();
    if (this.#state === 'welcome') log.info('hot restart: the next process is gone before it has begun to take over');
    else if (this.#state === 'yielding') {
      log.warning('hot restart: the next process is gone before it has taken over; serving on');
      this.#resume();
    } else if (this.#state === 'drained') await this.#onSuccessorGone();
  }

  async #onSuccessorGone(): Promise<void> {
    const { inheritance, log, clock, parentShutdownMs, place } = this.#parts;
    if (!(await isLeft(this.#childPlace, clock, CHILD_END_LIMIT_MS))) {
      // Two that accept side by side would go on doing so for ever.
      log.warning(
        'hot restart: the next process is there, but silent; this one has been drained, and ends in its time',
      );
      const restMs = this.#drainedMs + parentShutdownMs - clock.monotonicMs();
      clock.after(restMs, () => inheritance().terminate());
      return;
    }
    log.warning('hot restart: the next process is gone; accepting again');
    await inheritance().takeBack();
    this.#resume();
    log.info(`hot restart: the process of restart epoch ${place.epoch} serves again`);
  }

  #resume(): void {
    const given = this.#parts.inheritance();
    given.restSinks(false);
    given.resumeAdmin();
  }

  get #childPlace(): EpochPlace {
    const { place } = this.#parts;
    return { ...place, epoch: place.epoch + 1 };
  }
}
