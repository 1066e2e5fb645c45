// One file that holds a DiscoveryResponse, for all who ask for some of it: it is watched once, and opened once for as many as come
// shortly after one another. They are told in turns, so that others get theirs. Main thread.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { OpenedResponse } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { FileSourceSettings } from '../../snapshot/index.ts';
import type { FileWatches } from './file-watches.ts';
import { MoveWatch, type MoveWatchEvents } from './move-watch.ts';
import type { ReadResponseFile, ResponseReader } from './response-reader.ts';
import { ConnectionRecord, type SourceReport, TypeRecord } from './source-report.ts';

export interface FileSourceDependencies {
  readonly clock: Clock;
  readonly reader: Pick<ResponseReader, 'open'>;
  readonly log: Logger;
  readonly faults: FaultBoundary;
  /** Of files that are followed however they change. */
  readonly watches: Pick<FileWatches, 'follow'>;
}

export interface FileReader {
  /** There is something to be read, perhaps what has been read already. */
  read(): void;
}

/** Times of files are those of the last tick of the system. */
const TICK_MS = 50;
/** An opened response is many times as large as its file: so long after the last has been told, nobody else is expected. */
const KEPT_MS = 1_000;

export class FileSource {
  readonly #settings: FileSourceSettings;
  readonly #followsWrites: boolean;
  readonly #deps: FileSourceDependencies;
  readonly #readers = new Set<FileReader>();
  /** Those that are to be told, in this order. */
  readonly #waiting = new Set<FileReader>();
  /** From the first reader on. */
  #slice: TimeSlice | undefined;
  #isTelling = false;
  #watch: { close(): void } | undefined;
  readonly #record: ConnectionRecord;
  readonly #types = new Map<string, TypeRecord>();
  /** Why it could not be read; empty where it could. */
  #complaint = '';
  /** Undefined where it could not be opened. */
  #opened: { readonly response: OpenedResponse | undefined } | undefined;
  #isOpening = false;
  /** Another has been moved over it while it was opened. */
  #isOutdated = false;
  #endKeeping = (): void => {};

  /** @param followsWrites it is read again also when it is not moved, but written in place. */
  constructor(settings: FileSourceSettings, followsWrites: boolean, deps: FileSourceDependencies) {
    this.#settings = settings;
    this.#followsWrites = followsWrites;
    this.#deps = deps;
    this.#record = new ConnectionRecord(deps.clock);
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  /** It is told soon, and each time that there is another file. */
  join(reader: FileReader): void {
    this.#readers.add(reader);
    // Watched first: what changes between the two is read twice rather than not at all.
    this.#watch ??= this.#startWatch();
    this.tellLater(reader);
  }

  leave(reader: FileReader): void {
    this.#readers.delete(reader);
    this.#waiting.delete(reader);
    if (this.hasReaders) return;
    this.#watch?.close();
    this.#watch = undefined;
    this.#forget();
  }

  /** When it has its turn. */
  tellLater(reader: FileReader): void {
    this.#waiting.add(reader);
    this.#tell();
  }

  /** For a reader that has its turn. @returns undefined where it cannot be read; the reason has been logged. */
  get opened(): OpenedResponse | undefined {
    return this.#opened!.response;
  }

  /** Somebody has taken resources of a type over. @param refusals why some of them are refused, one reason each. */
  took(typeName: string, version: string, refusals: readonly string[]): void {
    const record = this.#types.get(typeName) ?? new TypeRecord(this.#deps.clock);
    this.#types.set(typeName, record);
    record.took(version, refusals);
  }

  report(): SourceReport {
    const { path: name } = this.#settings;
    const types = [...this.#types].map(([typeName, record]) => record.report(typeName, null));
    return { kind: 'file', name, complaint: this.#complaint, types, ...this.#record.report() };
  }

  /** @returns a promise where others have their turns meanwhile. */
  #open(): Promise<void> | undefined {
    const opened = this.#deps.reader.open(this.#settings.path);
    if (opened instanceof Promise) return this.#openLater(opened);
    this.#opened = { response: this.#noteOpened(opened) };
    return undefined;
  }

  async #openLater(opening: Promise<ReadResponseFile>): Promise<void> {
    this.#isOpening = true;
    const opened = await opening;
    this.#isOpening = false;
    this.#opened = { response: this.#noteOpened(opened) };
  }

  #noteOpened(opened: ReadResponseFile): OpenedResponse | undefined {
    const { log } = this.#deps;
    this.#record.connected(!('faults' in opened));
    this.#complaint = 'faults' in opened ? opened.faults.join('; ') : '';
    if ('faults' in opened) {
      for (const fault of opened.faults) log.warning(`resources are not taken over: ${fault}`);
      return undefined;
    }
    for (const warning of opened.warnings) log.warning(warning);
    return opened;
  }

  #forget(): void {
    this.#endKeeping();
    this.#opened = undefined;
  }

  #startAnew(): void {
    this.#isOutdated = false;
    this.#forget();
    for (const reader of this.#readers) this.#waiting.add(reader);
    this.#tell();
  }

  #startWatch(): { close(): void } {
    const { clock, log, faults, watches } = this.#deps;
    const { path, watchedFolder } = this.#settings;
    const events: MoveWatchEvents = {
      onMoved: () => {
        log.info(`${path} is read again: ${watchedFolder ?? path} has changed`);
        // Who waits for what is being read has it first: it may change faster than it can be read.
        if (this.#isOpening) this.#isOutdated = true;
        else this.#startAnew();
      },
      onError: (error) => log.warning(`${path} is not watched: ${errorMessage(error)}`),
    };
    if (this.#followsWrites) {
      const file = watchedFolder === undefined ? { path } : { path, watchedFolder };
      return { close: watches.follow([file], clock.wallMs() - TICK_MS, events.onMoved) };
    }
    return watchedFolder === undefined
      ? MoveWatch.ofPlace(path, faults, events)
      : MoveWatch.ofFolder(watchedFolder, faults, events);
  }

  #tell(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    this.#slice ??= new TimeSlice();
    const slice = this.#slice;
    this.#deps.faults.run(`telling of ${this.#settings.path}`, async () => {
      try {
        for (const reader of this.#waiting) {
          if (slice.isOverNow()) await slice.rest();
          while (this.#opened === undefined) {
            const opening = this.#open();
            if (opening !== undefined) await opening;
          }
          // It may have left meanwhile.
          if (this.#waiting.delete(reader)) reader.read();
        }
      } finally {
        this.#isTelling = false;
        this.#endKeeping();
        this.#endKeeping = this.#deps.clock.after(KEPT_MS, () => this.#forget());
        if (this.#isOutdated) this.#startAnew();
      }
    });
  }
}
