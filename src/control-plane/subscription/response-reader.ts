// Opens files of resources. Small ones at once; large ones are read in a thread of their own, since that takes seconds in one go, and
// its heap goes back with it. Main thread.
//
//   open ──large──▶ waiting ──one at a time──▶ thread ──digest──▶ opened in slices
//
// What the thread dies of is the fault of the file that it was reading; the next file gets another one.

import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { threadEntry } from '../../base/package-root.ts';
import {
  MAX_SOURCE_BYTES,
  type OpenedResponse,
  openDigest,
  openResponse,
  type ReadingOrder,
  type ResponseDigest,
  type UnknownFieldPolicy,
} from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';

export type ReadResponseFile = OpenedResponse | { readonly faults: readonly string[] };

export interface ResponseReaderDependencies {
  readonly clock: Clock;
  readonly unknownFields: UnknownFieldPolicy;
  readonly log: Logger;
  readonly faults: FaultBoundary;
  /** Starts one that answers a ReadingOrder with a ResponseDigest. */
  readonly startThread: () => Worker;
}

/** To read so much takes main some milliseconds. */
const DIRECT_BYTES = 64 * 1024;
/** More of what is mounted together comes within this. */
const KEPT_MS = 500;
/** As loggers know this file. */
const FILE = 'src/control-plane/subscription/response-reader.ts';

interface Waiting {
  readonly file: string;
  readonly opened: (opened: ReadResponseFile) => void;
}

/** @param flags of Node; those of the process when undefined. */
export function startResponseThread(flags?: readonly string[]): Worker {
  const execArgv = flags === undefined ? {} : { execArgv: [...flags] };
  const thread = new Worker(threadEntry('response-reader.ts'), { name: 'response_reader', ...execArgv });
  thread.unref();
  return thread;
}

export class ResponseReader {
  readonly #deps: ResponseReaderDependencies;
  readonly #waiting: Waiting[] = [];
  #thread: Worker | undefined;
  /** What the thread is at work on. */
  #current: Waiting | undefined;
  #endKeeping = (): void => {};
  #isClosed = false;

  constructor(deps: ResponseReaderDependencies) {
    this.#deps = deps;
  }

  /** A promise for a large one, which never settles after `close`. */
  open(file: string): ReadResponseFile | Promise<ReadResponseFile> {
    if (!isLarge(file)) return openResponse(file, this.#deps.unknownFields);
    const { promise, resolve } = Promise.withResolvers<ReadResponseFile>();
    this.#waiting.push({ file, opened: resolve });
    this.#next();
    return promise;
  }

  /** Nothing is read any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#current = undefined;
    this.#end();
  }

  #next(): void {
    if (this.#isClosed || this.#current !== undefined) return;
    this.#endKeeping();
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#endKeeping = this.#deps.clock.after(KEPT_MS, () => this.#end());
      return;
    }
    this.#current = next;
    try {
      this.#thread ??= this.#start();
    } catch (error) {
      this.#failed(errorMessage(error));
      return;
    }
    const { mode, seen } = this.#deps.unknownFields;
    this.#thread.postMessage({ file: next.file, mode, seen: [...seen] } satisfies ReadingOrder);
  }

  #start(): Worker {
    const { faults, startThread } = this.#deps;
    const thread = startThread();
    const isOwn = (): boolean => this.#thread === thread;
    let reason = '';
    const onMessage = (digest: ResponseDigest): void => {
      if (isOwn()) this.#read(digest);
    };
    const onError = (error: unknown): void => {
      reason = errorMessage(error);
    };
    const onExit = (code: number): void => {
      if (!isOwn()) return;
      this.#thread = undefined;
      this.#failed(reason || `exit code ${code}`);
    };
    thread.on('message', faults.handler('what another thread has read of a file', onMessage));
    thread.on('error', faults.handler('the failure of the thread that reads files', onError));
    thread.on('exit', faults.handler('the end of the thread that reads files', onExit));
    return thread;
  }

  #read(digest: ResponseDigest): void {
    const { unknownFields, faults } = this.#deps;
    const { file, opened } = this.#current!;
    for (const key of digest.metFields) unknownFields.met(key);
    const where = `opening ${file}`;
    faults.run(where, async () => {
      let response: ReadResponseFile;
      try {
        response = await openDigest(file, digest);
      } catch (error) {
        faults.report(where, error);
        response = { faults: [`${file}: cannot be read: ${errorMessage(error)}`] };
      }
      if (this.#isClosed) return;
      this.#current = undefined;
      opened(response);
      this.#next();
    });
  }

  /** It is the fault of the file, as far as anybody can tell. */
  #failed(reason: string): void {
    const current = this.#current;
    this.#current = undefined;
    if (current === undefined) {
      this.#deps.log.ofFile(FILE).warning(`the thread that reads large files has ended: ${reason}`);
      return;
    }
    current.opened({ faults: [`${current.file}: cannot be read: the thread that reads it has ended: ${reason}`] });
    this.#next();
  }

  #end(): void {
    this.#endKeeping();
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread === undefined) return;
    this.#deps.faults.run('ending the thread that reads files', async () => {
      await thread.terminate();
    });
  }
}

/** What is no file, is not there, or is larger than any may be, is found out at once. */
function isLarge(file: string): boolean {
  try {
    const stats = statSync(file, { throwIfNoEntry: false });
    return stats?.isFile() === true && stats.size > DIRECT_BYTES && stats.size <= MAX_SOURCE_BYTES;
  } catch {
    return false;
  }
}
