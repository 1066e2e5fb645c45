// What filters record by themselves goes into files here, one for each exchange: <path_prefix>_<number> and an extension that says
// in which form. Main thread. Nobody waits for a disk: what it does not take in time is dropped, and counted.

import { appendFile } from 'node:fs/promises';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { Logger } from '../../log/index.ts';
import { type TapFile, type TapFormat, type TapTrace, tapTraceCost } from '../../snapshot/index.ts';
import { renderTrace } from './render-trace.ts';

/** Recorded and not yet written. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

const EXTENSIONS: Readonly<Record<TapFormat, string>> = {
  'json-bytes': 'json',
  'json-text': 'json',
  binary: 'pb',
  'binary-delimited': 'pb_length_delimited',
  text: 'pb_text',
};

export interface TapFilesDependencies {
  readonly log: Pick<Logger, 'warning'>;
  readonly faults: FaultBoundary;
  readonly onWritten: () => void;
  readonly onDropped: (count: number) => void;
}

interface Waiting {
  readonly file: TapFile;
  readonly trace: TapTrace;
}

export class TapFilesWriter {
  readonly #deps: TapFilesDependencies;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  /** Prefixes at which the last file could not be written: said once. */
  readonly #failing = new Set<string>();

  constructor(deps: TapFilesDependencies) {
    this.#deps = deps;
  }

  write(file: TapFile, trace: TapTrace): void {
    const cost = tapTraceCost(trace);
    if (this.#waitingBytes > 0 && this.#waitingBytes + cost > MAX_WAITING_BYTES) {
      this.#deps.onDropped(1);
      return;
    }
    this.#waitingBytes += cost;
    this.#waiting.push({ file, trace });
    if (!this.#isWriting) this.#deps.faults.run('writing tapped exchanges', () => this.#writeAll());
  }

  /** One after the other: the pieces of an exchange keep their order. */
  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) await this.#write(next);
    } finally {
      this.#isWriting = false;
    }
  }

  async #write({ file, trace }: Waiting): Promise<void> {
    try {
      await this.#append(file, trace);
    } finally {
      this.#waitingBytes -= tapTraceCost(trace);
    }
  }

  async #append({ pathPrefix, format, exchangeId }: TapFile, trace: TapTrace): Promise<void> {
    const { log, onWritten, onDropped } = this.#deps;
    try {
      await appendFile(`${pathPrefix}_${exchangeId}.${EXTENSIONS[format]}`, renderTrace(trace, format));
      this.#failing.delete(pathPrefix);
      onWritten();
    } catch (error) {
      if (!this.#failing.has(pathPrefix)) log.warning(`cannot write a tapped exchange: ${errorMessage(error)}`);
      this.#failing.add(pathPrefix);
      onDropped(1);
    }
  }
}
