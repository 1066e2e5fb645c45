// The tap under way, as this worker knows it, and the way to main of what it and filters by themselves record. Worker thread. A
// port between threads has no bound of its own, so main confirms what it has taken: what is recorded beyond that is dropped, and
// counted.

import type { Random } from '../../base/random.ts';
import type { TapFile, TapFiles, TapSession, TapTrace, WorkerToMain } from '../../snapshot/index.ts';
import { tapTraceCost } from '../../snapshot/index.ts';

/** Recorded and not yet taken by main. */
const MAX_UNDER_WAY_BYTES = 4 * 1024 * 1024;
/** Kept for exchanges that are under way, all of them together. */
const MAX_KEPT_BYTES = 32 * 1024 * 1024;
/** Of the numbers of files, how many follow one another behind what chance has chosen; all are below 2^53. */
const FILE_NUMBERS = 2 ** 20;

export class Taps {
  readonly #post: (message: WorkerToMain) => void;
  readonly #random: Random;
  #session: TapSession | null = null;
  #bytesUnderWay = 0;
  #bytesKept = 0;
  /** Traces lost that main does not know of: those of the session, and those of files. */
  #dropped = 0;
  #droppedOfFiles = 0;
  #exchanges = 0;

  constructor(post: (message: WorkerToMain) => void, random: Random) {
    this.#post = post;
    this.#random = random;
  }

  /** Begins or, with null, ends. What is under way for another one is recorded no further. */
  replace(session: TapSession | null): void {
    this.#session = session;
    this.#dropped = 0;
  }

  /** Asked with each request of a filter. */
  find(configId: string): TapSession | null {
    return this.#session !== null && this.#session.settings.configId === configId ? this.#session : null;
  }

  isUnderWay(session: TapSession): boolean {
    return session.files !== null || this.#session === session;
  }

  /** The file of another exchange: names of other workers and of processes before and after this one are others. */
  nextFile(files: TapFiles): TapFile {
    return { ...files, exchangeId: this.#random.u32() * FILE_NUMBERS + (this.nextExchange() % FILE_NUMBERS) };
  }

  /** Another number for each exchange of this worker. */
  nextExchange(): number {
    this.#exchanges += 1;
    return this.#exchanges;
  }

  /** @returns how many of the bytes there is room for; `release` gives them back. */
  keep(bytes: number): number {
    const granted = Math.min(bytes, MAX_KEPT_BYTES - this.#bytesKept);
    this.#bytesKept += granted;
    return granted;
  }

  release(bytes: number): void {
    this.#bytesKept -= bytes;
  }

  /** @param file where it goes; null for the reader of the session. */
  send(session: TapSession, trace: TapTrace, file: TapFile | null): void {
    if (!this.isUnderWay(session)) return;
    const cost = tapTraceCost(trace);
    if (this.#bytesUnderWay > 0 && this.#bytesUnderWay + cost > MAX_UNDER_WAY_BYTES) {
      if (file === null) this.#dropped += 1;
      else this.#droppedOfFiles += 1;
      return;
    }
    this.#bytesUnderWay += cost;
    const dropped = file === null ? this.#dropped : this.#droppedOfFiles;
    this.#post({ type: 'tap-trace', to: file ?? session.id, trace, cost, dropped });
    if (file === null) this.#dropped = 0;
    else this.#droppedOfFiles = 0;
  }

  /** Main has taken, or thrown away, traces of this cost. */
  confirm(cost: number): void {
    this.#bytesUnderWay -= cost;
    if (this.#droppedOfFiles > 0) this.#post({ type: 'tap-dropped', from: 'files', count: this.#droppedOfFiles });
    this.#droppedOfFiles = 0;
    if (this.#dropped === 0 || this.#session === null) return;
    this.#post({ type: 'tap-dropped', from: this.#session.id, count: this.#dropped });
    this.#dropped = 0;
  }
}
