// Tells when files have other content than before, however operators change them: written in place, replaced by a file that is
// moved over them, or by a symbolic link anywhere on their way that leads elsewhere now. Main thread.
//
// A folder is watched once, however many ask for files in it. What happens in it only says where to look: a file has changed
// when the system says so (its number, size and times). Several changes shortly after one another are told together, once they
// have come to an end, since keys and their certificates are written one after the other.

import { type FSWatcher, readlinkSync, statSync, watch } from 'node:fs';
import path from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { Logger } from '../../log/index.ts';

export interface WatchedFile {
  /** Absolute. */
  readonly path: string;
  /** Something that is moved into this folder may change the file as well. */
  readonly watchedFolder?: string;
}

export interface FileWatchesDependencies {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
}

/** What has to happen in a folder for a file to be looked at; any name in a folder that was asked for. */
interface Place {
  readonly folder: string;
  readonly name: string | null;
}

/** Nothing more has happened for this long. */
const QUIET_MS = 100;
/** Somebody who never stops writing is told of after this. */
const MAX_WAIT_MS = 2_000;
/** A folder that cannot be watched, or is gone, is tried again after this. */
const RETRY_MS = 1_000;
/** As many as the system follows. */
const MAX_LINKS = 40;
const ABSENT = 'absent';

export class FileWatches {
  readonly #deps: FileWatchesDependencies;
  readonly #folders = new Map<string, FolderWatch>();
  readonly #files = new Map<string, FileWatch>();
  readonly #touched = new Set<FileWatch>();
  #firstTouchMs = 0;
  #endWait = (): void => {};

  constructor(deps: FileWatchesDependencies) {
    this.#deps = deps;
  }

  /** Folders that are watched. */
  get folderCount(): number {
    return this.#folders.size;
  }

  /**
   * @param since milliseconds of Unix time: what has changed behind that counts as a change, and is told in a later turn.
   * @param onChanged told with the paths that have other content than before.
   * @returns what ends it.
   */
  follow(files: Iterable<WatchedFile>, since: number, onChanged: (paths: ReadonlySet<string>) => void): () => void {
    const listener: ChangeListener = { onChanged };
    const watches = [...files].map((file) => this.#fileWatch(file));
    for (const file of watches) {
      file.listeners.add(listener);
      if (file.changedMs > since) this.#touch(file, listener);
    }
    return () => {
      for (const file of watches) this.#leave(file, listener);
    };
  }

  close(): void {
    this.#endWait();
    this.#touched.clear();
    for (const folder of this.#folders.values()) folder.close();
    this.#folders.clear();
    this.#files.clear();
  }

  #fileWatch(file: WatchedFile): FileWatch {
    const key = `${file.path}\0${file.watchedFolder ?? ''}`;
    const known = this.#files.get(key);
    if (known !== undefined) return known;
    const made = new FileWatch(key, file);
    this.#files.set(key, made);
    this.#settle(made);
    return made;
  }

  #leave(file: FileWatch, listener: ChangeListener): void {
    file.listeners.delete(listener);
    file.late.delete(listener);
    if (file.listeners.size > 0 || this.#files.get(file.key) !== file) return;
    this.#files.delete(file.key);
    this.#touched.delete(file);
    for (const { folder } of file.places) this.#leaveFolder(folder, file);
  }

  /** Watches the folders on the way to a file as it is now. */
  #settle(file: FileWatch): void {
    const former = file.places;
    file.places = file.findPlaces();
    for (const { folder, name } of file.places) {
      let watched = this.#folders.get(folder);
      if (watched === undefined) {
        watched = new FolderWatch(folder, this.#deps, (name) => this.#happened(folder, name));
        this.#folders.set(folder, watched);
      }
      watched.add(file, name);
    }
    const wanted = new Set(file.places.map(({ folder }) => folder));
    for (const { folder } of former) if (!wanted.has(folder)) this.#leaveFolder(folder, file);
  }

  #leaveFolder(folder: string, file: FileWatch): void {
    const watched = this.#folders.get(folder);
    if (watched === undefined || !watched.leave(file)) return;
    watched.close();
    this.#folders.delete(folder);
  }

  /** @param name null where the system does not say, and when the folder itself is another. */
  #happened(folder: string, name: string | null): void {
    const watched = this.#folders.get(folder);
    for (const file of watched?.concerned(name) ?? []) this.#touch(file);
  }

  /** @param late one that has not seen the change before. */
  #touch(file: FileWatch, late?: ChangeListener): void {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (this.#touched.size === 0) this.#firstTouchMs = nowMs;
    this.#touched.add(file);
    if (late !== undefined) file.late.add(late);
    this.#endWait();
    const waitMs = Math.min(QUIET_MS, this.#firstTouchMs + MAX_WAIT_MS - nowMs);
    this.#endWait = clock.after(waitMs, () => this.#look());
  }

  #look(): void {
    const files = [...this.#touched];
    this.#touched.clear();
    const changes = new Map<ChangeListener, Set<string>>();
    for (const file of files) {
      this.#settle(file);
      const told = file.hasChanged() ? [...file.listeners] : [...file.late];
      file.late.clear();
      for (const listener of told) {
        const paths = changes.get(listener) ?? new Set();
        changes.set(listener, paths.add(file.path));
      }
    }
    for (const [{ onChanged }, paths] of changes) onChanged(paths);
  }
}

interface ChangeListener {
  readonly onChanged: (paths: ReadonlySet<string>) => void;
}

class FileWatch {
  readonly key: string;
  readonly path: string;
  readonly listeners = new Set<ChangeListener>();
  /** Those that a change is news to which the others have heard of. */
  readonly late = new Set<ChangeListener>();
  places: readonly Place[] = [];
  /** Of the file's node, milliseconds of Unix time; 0 without a file. */
  changedMs = 0;
  readonly #watchedFolder: string | undefined;
  #version: string;

  constructor(key: string, { path: file, watchedFolder }: WatchedFile) {
    this.key = key;
    this.path = file;
    this.#watchedFolder = watchedFolder;
    this.#version = this.#look();
  }

  /** Since this was asked last. */
  hasChanged(): boolean {
    const former = this.#version;
    this.#version = this.#look();
    return this.#version !== former;
  }

  findPlaces(): readonly Place[] {
    const places: Place[] = [];
    const real = followLinks(this.path, places, { left: MAX_LINKS });
    places.push({ folder: path.dirname(real), name: path.basename(real) });
    const folder = this.#watchedFolder;
    if (folder !== undefined) {
      const way: Place[] = [];
      places.push({ folder: followLinks(folder, way, { left: MAX_LINKS }), name: null }, ...way);
    }
    return places;
  }

  #look(): string {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = statSync(this.path, { bigint: true });
      this.changedMs = Number(ctimeMs);
      return [dev, ino, size, mtimeNs, ctimeNs].join('/');
    } catch {
      this.changedMs = 0;
      return ABSENT;
    }
  }
}

/** @param links gets the places of all that are followed. @returns the path without links; as far as it exists. */
function followLinks(at: string, links: Place[], budget: { left: number }): string {
  const above = path.dirname(at);
  if (above === at) return at;
  const folder = followLinks(above, links, budget);
  const name = path.basename(at);
  const place = path.join(folder, name);
  const target = linkTarget(place);
  if (target === undefined || budget.left === 0) return place;
  budget.left -= 1;
  links.push({ folder, name });
  return followLinks(path.resolve(folder, target), links, budget);
}

function linkTarget(place: string): string | undefined {
  try {
    return readlinkSync(place);
  } catch {
    return undefined;
  }
}

class FolderWatch {
  readonly #folder: string;
  readonly #deps: FileWatchesDependencies;
  readonly #onEvent: (name: string | null) => void;
  /** Who asks for what. */
  readonly #names = new Map<FileWatch, Set<string | null>>();
  #watcher: FSWatcher | undefined;
  #endRetry = (): void => {};
  #hasWarned = false;

  constructor(folder: string, deps: FileWatchesDependencies, onEvent: (name: string | null) => void) {
    this.#folder = folder;
    this.#deps = deps;
    this.#onEvent = onEvent;
    this.#open();
  }

  add(file: FileWatch, name: string | null): void {
    const names = this.#names.get(file) ?? new Set();
    this.#names.set(file, names.add(name));
  }

  /** @returns true when nobody asks for it any more. */
  leave(file: FileWatch): boolean {
    this.#names.delete(file);
    return this.#names.size === 0;
  }

  *concerned(name: string | null): Generator<FileWatch> {
    for (const [file, names] of this.#names) if (name === null || names.has(name) || names.has(null)) yield file;
  }

  close(): void {
    this.#endRetry();
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #open(): void {
    this.close();
    const { faults } = this.#deps;
    const where = `the watch of ${this.#folder}`;
    const onEvent = (event: string, name: string | null): void => this.#happened(event, name);
    try {
      this.#watcher = watch(this.#folder, { persistent: false }, faults.handler(where, onEvent));
      const onError = (error: Error): void => this.#failed(error);
      this.#watcher.on('error', faults.handler(where, onError));
      this.#hasWarned = false;
    } catch (error) {
      this.#failed(error);
    }
  }

  #happened(event: string, name: string | null): void {
    // The system tells of the folder itself by its own name: it has been removed, or moved away.
    const isSelf = event === 'rename' && name === path.basename(this.#folder);
    if (isSelf) this.#retryLater(0);
    this.#onEvent(isSelf ? null : name);
  }

  #failed(error: unknown): void {
    if (!this.#hasWarned) this.#deps.log.warning(`${this.#folder} is not watched: ${errorMessage(error)}`);
    this.#hasWarned = true;
    this.#retryLater(RETRY_MS);
  }

  #retryLater(delayMs: number): void {
    this.close();
    this.#endRetry = this.#deps.clock.after(delayMs, () => {
      this.#open();
      // What has happened meanwhile was not seen.
      if (this.#watcher !== undefined) this.#onEvent(null);
    });
  }
}
