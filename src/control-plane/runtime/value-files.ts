// Runtime values in a tree of files: folders are parts of a key, each file is a value. Main thread; read step by step, so that
// whoever reads a large tree while requests come can rest between.

import { opendirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { errorMessage } from '../../base/errors.ts';

/** Folders in folders, below the one of the layer. */
const MAX_DEPTH = 16;
/** Files of one layer, and their bytes together (I9). */
const MAX_FILES = 100_000;
const MAX_BYTES = 16 * 1024 * 1024;
/** Names of files that are asked of the system at once: those of a large folder take 15 ms together. */
const NAMES_AT_ONCE = 256;
/** Parts of a fraction: as folders they would be read as parts of a key. */
const RESERVED: ReadonlySet<string> = new Set(['numerator', 'denominator']);
/** Files there may have no end, or bring harm when they are read. */
const FORBIDDEN = /^\/(?:dev|proc|sys)(?:\/|$)/;

export type ValueFiles =
  | { readonly kind: 'read'; readonly values: ReadonlyMap<string, string> }
  /** There is no such folder, which is no fault: an operator may make it later. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed'; readonly reason: string };

/** Steps of a few microseconds, and what they come to. */
export type InSteps<Result> = Generator<void, Result, void>;

export function* readValueFiles(folder: string): InSteps<ValueFiles> {
  let root: string;
  try {
    root = realpathSync(folder);
    if (!statSync(root).isDirectory()) return { kind: 'missing' };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR' ? { kind: 'missing' } : failed(error);
  }
  try {
    const walk = new Walk();
    yield* walk.folder(root, '', 0);
    return { kind: 'read', values: walk.values };
  } catch (error) {
    return failed(error);
  }
}

function failed(error: unknown): ValueFiles {
  return { kind: 'failed', reason: errorMessage(error) };
}

class Walk {
  readonly values = new Map<string, string>();
  #bytes = 0;

  *folder(folder: string, prefix: string, depth: number): InSteps<void> {
    if (depth > MAX_DEPTH) throw new Error(`${folder} lies more than ${MAX_DEPTH} folders deep`);
    if (FORBIDDEN.test(realpathSync(folder))) throw new Error(`${folder} is no place for values`);
    for (const name of namesIn(folder)) {
      yield;
      // So begin the folders by which mounts of containers swap all files at once; what is in them is linked beside them.
      if (name.startsWith('..')) continue;
      const entry = path.join(folder, name);
      const kind = statSync(entry);
      if (kind.isDirectory()) {
        if (RESERVED.has(name)) throw new Error(`${entry}: no folder may be called ${name}`);
        yield* this.folder(entry, `${prefix}${name}.`, depth + 1);
      } else if (kind.isFile()) this.#file(entry, prefix + name, kind.size);
    }
  }

  #file(file: string, key: string, size: number): void {
    this.#bytes += size;
    if (this.values.size >= MAX_FILES || this.#bytes > MAX_BYTES) {
      throw new Error(`there are more than ${MAX_FILES} files or ${MAX_BYTES} bytes of them`);
    }
    this.values.set(key, valueText(readFileSync(file, 'utf8')));
  }
}

function* namesIn(folder: string): Generator<string, void, void> {
  const opened = opendirSync(folder, { bufferSize: NAMES_AT_ONCE });
  try {
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync()) yield entry.name;
  } finally {
    opened.closeSync();
  }
}

/** Lines that begin with # are comments; the last line ends without its blanks. */
export function valueText(text: string): string {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const last = lines.pop()?.trimEnd() ?? '';
  return [...lines, last].join('\n');
}
