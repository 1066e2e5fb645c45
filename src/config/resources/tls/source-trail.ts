// Notes what the settings of a TLS context are made of that may change while they are in use: files, so that somebody can watch
// them, and secrets that come by discovery.

import path from 'node:path';
import type { SecretReference, TlsFile } from '../../../snapshot/index.ts';
import type { WatchedDirectory } from '../messages.ts';

/** Of one context. */
interface Noted {
  readonly files: TlsFile[];
  readonly secrets: SecretReference[];
  /** Of the secrets, those that have not come. */
  readonly missing: SecretReference[];
}

export class SourceTrail {
  readonly #noted: Noted;
  readonly #known: Omit<TlsFile, 'path'>;

  /** @param known of every file on the way. */
  constructor(noted: Noted = { files: [], secrets: [], missing: [] }, known: Omit<TlsFile, 'path'> = {}) {
    this.#noted = noted;
    this.#known = known;
  }

  get files(): readonly TlsFile[] {
    return this.#noted.files;
  }

  get secrets(): readonly SecretReference[] {
    return this.#noted.secrets;
  }

  get missing(): readonly SecretReference[] {
    return this.#noted.missing;
  }

  /** Of the parts of a secret. */
  ofSecret(secret: string): SourceTrail {
    return new SourceTrail(this.#noted, { ...this.#known, secret });
  }

  /** Of a message that names a folder for all of its files. */
  inFolder(folder: WatchedDirectory | null): SourceTrail {
    return new SourceTrail(this.#noted, { ...this.#known, ...watched(folder) });
  }

  note(file: string, folder: WatchedDirectory | null = null): void {
    const noted = { path: path.resolve(file), ...this.#known, ...watched(folder) };
    const { files } = this.#noted;
    const isKnown = files.some(({ path: known, secret }) => known === noted.path && secret === noted.secret);
    if (!isKnown) files.push(noted);
  }

  noteSecret(reference: SecretReference, isMissing: boolean): void {
    this.#noted.secrets.push(reference);
    if (isMissing) this.#noted.missing.push(reference);
  }
}

function watched(folder: WatchedDirectory | null): Pick<TlsFile, 'watchedFolder'> {
  return folder === null || folder.path === '' ? {} : { watchedFolder: path.resolve(folder.path) };
}
