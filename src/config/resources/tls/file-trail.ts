// Notes the files that the settings of a TLS context are read from, so that somebody can watch them.

import path from 'node:path';
import type { TlsFile } from '../../../snapshot/index.ts';
import type { WatchedDirectory } from '../messages.ts';

export class FileTrail {
  readonly files: TlsFile[];
  readonly #known: Omit<TlsFile, 'path'>;

  /** @param known of every file on the way. */
  constructor(files: TlsFile[] = [], known: Omit<TlsFile, 'path'> = {}) {
    this.files = files;
    this.#known = known;
  }

  /** Of the parts of a secret. */
  ofSecret(secret: string): FileTrail {
    return new FileTrail(this.files, { ...this.#known, secret });
  }

  /** Of a message that names a folder for all of its files. */
  inFolder(folder: WatchedDirectory | null): FileTrail {
    return new FileTrail(this.files, { ...this.#known, ...watched(folder) });
  }

  note(file: string, folder: WatchedDirectory | null = null): void {
    this.#add({ path: path.resolve(file), ...this.#known, ...watched(folder) });
  }

  /** The file with the message of a secret. */
  noteSecret(file: string, secret: string, folder: WatchedDirectory | null): void {
    this.#add({ path: path.resolve(file), ...watched(folder), secret, holdsSecret: true });
  }

  #add(file: TlsFile): void {
    const isKnown = this.files.some(({ path: known, secret }) => known === file.path && secret === file.secret);
    if (!isKnown) this.files.push(file);
  }
}

function watched(folder: WatchedDirectory | null): Pick<TlsFile, 'watchedFolder'> {
  return folder === null || folder.path === '' ? {} : { watchedFolder: path.resolve(folder.path) };
}
