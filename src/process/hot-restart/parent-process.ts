// The process that this one takes over from, seen from this one: it is asked for its sockets and counts, told to drain, and in
// the end told to leave. It may be gone at any moment; then nothing comes from it any more, and this process goes on alone.

import { connect, type Socket } from 'node:net';
import { type Address, formatAddress, systemPath } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import { WeirError } from '../../base/errors.ts';
import type { SystemCalls } from '../../base/system-calls.ts';
import { HOT_RESTART_VERSION } from '../../base/version.ts';
import type { ParentLoad } from '../../control-plane/index.ts';
import type { Logger } from '../../log/index.ts';
import type { StatBatch } from '../../stats/index.ts';
import { DescriptorSocket } from './descriptor-socket.ts';
import { type EpochPlace, isNobodyThere, socketName } from './domain-sockets.ts';
import type { Answer, Numbered, Question } from './messages.ts';
import { isTrusted, Peer } from './peer.ts';

export interface ParentProcessParts {
  /** Of this process. */
  readonly place: EpochPlace;
  readonly calls: SystemCalls;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What is told to whoever takes in stats of the parent. */
export interface StatReceiver {
  take(batch: StatBatch): void;
  /** The last batch of a telling has come. */
  end(): void;
  /** The parent is gone. */
  close(): void;
}

interface Waiting {
  readonly resolve: (answer: Answer | undefined) => void;
  readonly cancelLimit: () => void;
}

/** A parent that answers nothing for so long hangs, and is done without. */
const ANSWER_LIMIT_MS = 30_000;
const NO_LOAD: ParentLoad = { connections: 0, memoryBytes: 0 };
const TOKEN_BYTES = 16;

export class ParentProcess {
  readonly #parts: ParentProcessParts;
  readonly #peer: Peer;
  readonly #waiting = new Map<number, Waiting>();
  readonly #gone = Promise.withResolvers<void>();
  #descriptors: DescriptorSocket | undefined;
  #nextId = 1;
  #receiver: StatReceiver | undefined;
  #load = NO_LOAD;
  /** How many processes were in the row before this one, and for how long. */
  generation = 0;
  runMs = 0;
  /** Null when it has none to tell. */
  ticketSecret: Uint8Array | null = null;

  /** @throws WeirError WEIR_HOT_RESTART when there is none, or it does not let this process take over. */
  static async connect(parts: ParentProcessParts): Promise<ParentProcess> {
    const { place, calls } = parts;
    const epoch = place.epoch - 1;
    const name = socketName('parent', { ...place, epoch });
    const socket = await connectTo(name, { ...place, epoch });
    if (!isTrusted(socket, calls)) {
      socket.destroy();
      throw new WeirError('WEIR_HOT_RESTART', `the process at ${name} belongs to another user`);
    }
    const parent = new ParentProcess(parts, socket);
    try {
      await parent.#greet(epoch);
      parent.#descriptors = await DescriptorSocket.bind(place, calls);
    } catch (error) {
      socket.destroy();
      throw error;
    }
    return parent;
  }

  private constructor(parts: ParentProcessParts, socket: Socket) {
    this.#parts = parts;
    this.#peer = new Peer(socket, {
      onMessage: (message) => this.#receive(message as Numbered<Answer>),
      onGone: () => this.#onGone(),
    });
  }

  get isThere(): boolean {
    return this.#peer.isThere;
  }

  /** Resolves when it is. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  /** As told last; nothing once it is gone. */
  get load(): ParentLoad {
    return this.#load;
  }

  /** @returns a descriptor of the admin interface's socket, if it has the address of this process's. */
  async stopAdmin(address: Address | undefined): Promise<number | undefined> {
    const token = this.#newToken();
    const answer = await this.#ask({ type: 'stop-admin', address: address ?? null, token });
    return this.#take(answer, token, 'the admin interface')[0];
  }

  /** Descriptors of all sockets that it has on an address. */
  async inherit(address: Address): Promise<readonly number[]> {
    const token = this.#newToken();
    const answer = await this.#ask({ type: 'sockets', address, token });
    return this.#take(answer, token, formatAddress(address));
  }

  /** From now on this one is told of stats: when asked for, and at the end. */
  receiveStats(receiver: StatReceiver): void {
    this.#receiver = receiver;
  }

  /** Resolves when the receiver has been told all, or the parent is gone. */
  async pullStats(): Promise<void> {
    await this.#ask({ type: 'stats' });
  }

  async drain(): Promise<void> {
    this.#descriptors?.close();
    this.#descriptors = undefined;
    await this.#ask({ type: 'drain' });
  }

  async terminate(): Promise<void> {
    await this.#ask({ type: 'terminate' });
  }

  async #greet(epoch: number): Promise<void> {
    const answer = await this.#ask({ type: 'hello', version: HOT_RESTART_VERSION, epoch: epoch + 1 });
    if (answer?.type === 'refused') throw new WeirError('WEIR_HOT_RESTART', answer.reason);
    if (answer?.type !== 'welcome') throw unreachable(epoch, 'it does not answer');
    if (answer.version !== HOT_RESTART_VERSION) throw otherVersion(HOT_RESTART_VERSION, answer.version);
    this.generation = answer.generation;
    this.runMs = answer.runMs;
    if (answer.ticketSecret !== undefined) this.ticketSecret = Buffer.from(answer.ticketSecret, 'base64');
  }

  #take(answer: Answer | undefined, token: string, what: string): readonly number[] {
    // They have been sent before the answer was.
    const descriptors = this.#descriptors?.take(token) ?? [];
    const count = answer?.type === 'descriptors' ? answer.count : 0;
    const { log } = this.#parts;
    if (descriptors.length < count)
      log.error(`of ${count} sockets of ${what} only ${descriptors.length} have come from the parent process`);
    return descriptors;
  }

  #newToken(): string {
    // Loading it takes milliseconds, which other starts do without.
    const token = process.getBuiltinModule('node:crypto').randomBytes(TOKEN_BYTES).toString('hex');
    this.#descriptors?.expect(token);
    return token;
  }

  /** @returns undefined when there is nobody to answer. */
  #ask(question: Question): Promise<Answer | undefined> {
    if (!this.isThere) return Promise.resolve(undefined);
    const id = this.#nextId++;
    return new Promise((resolve) => {
      const cancelLimit = this.#parts.clock.after(ANSWER_LIMIT_MS, () => {
        this.#parts.log.error(`the parent process does not answer '${question.type}', going on without it`);
        void this.#peer.end();
      });
      this.#waiting.set(id, { resolve, cancelLimit });
      void this.#peer.send({ ...question, id });
    });
  }

  #receive(message: Numbered<Answer>): void {
    if (message.type === 'stat-batch') {
      this.#receiver?.take(message.batch);
      return;
    }
    if (message.type === 'stats-end') {
      this.#receiver?.end();
      this.#load = message.load;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    waiting?.cancelLimit();
    waiting?.resolve(message);
  }

  #onGone(): void {
    this.#load = NO_LOAD;
    this.#receiver?.close();
    this.#receiver = undefined;
    this.#descriptors?.close();
    this.#descriptors = undefined;
    for (const { resolve, cancelLimit } of this.#waiting.values()) {
      cancelLimit();
      resolve(undefined);
    }
    this.#waiting.clear();
    this.#gone.resolve();
  }
}

/** @param own version of the process that says so. */
export function otherVersion(own: string, other: string): WeirError {
  const text = `hot restart version ${other} cannot take over from, or hand over to, ${own}: restart without --restart-epoch`;
  return new WeirError('WEIR_HOT_RESTART', text);
}

function unreachable(epoch: number, reason: string): WeirError {
  return new WeirError('WEIR_HOT_RESTART', `cannot take over from the process of restart epoch ${epoch}: ${reason}`);
}

function connectTo(name: string, { epoch, baseId }: EpochPlace): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(systemPath(name));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      const reason = isNobodyThere(code) ? `there is none with base id ${baseId}` : code;
      reject(unreachable(epoch, `${reason} at ${name}`));
    });
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}
