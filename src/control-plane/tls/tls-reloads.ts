// Reads the TLS contexts of listeners and clusters again when the files or secrets change that they come from, and has their
// handshakes go by what was read from then on. What cannot be used changes nothing. Main thread.
//
//   files, secrets ──changed──► read anew, equal contexts once ──right──► published, when it is something else
//                            ▲            └──wrong──► once more after a rest, and then logged and counted
//                            └── a pair of key and certificate may be half written ─┘

import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { type ReadContext, type ReadFault, type RereadInput, TlsReader } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { TlsFile, TlsSettings } from '../../snapshot/index.ts';
import { type Scope, SSL_SOCKET_FACTORY_STATS, type StatsStore } from '../../stats/index.ts';
import { secretKey } from '../secrets/secrets.ts';
import type { FileWatches } from '../subscription/file-watches.ts';
import type { ChangedContext, ChangedContexts } from './changed-contexts.ts';

/** Whose connections contexts of the configuration secure. */
export interface TlsOwner<Settings extends TlsSettings = TlsSettings> {
  readonly kind: 'listener' | 'cluster';
  readonly name: string;
  /** Of what is counted of its contexts, with its final dot. */
  readonly statPrefix: string;
  /** Those in force, by place; undefined where connections are plain. */
  readonly contexts: readonly (Settings | undefined)[];
  /** The same as its message and the files have them now. */
  read(reader: TlsReader): readonly (ReadContext<Settings> | undefined)[];
  /** Has handshakes go by other settings. @param onApplied called once, when all do. */
  secure(changed: ChangedContexts<Settings>, onApplied: () => void): void;
}

export interface TlsReloadsDependencies {
  readonly stats: Pick<StatsStore, 'scope'>;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  readonly watches: FileWatches;
  /** What contexts are read with, as it is now. */
  readonly input: () => RereadInput;
  /** When the configuration was read, milliseconds of Unix time, or before that. */
  readonly readAtMs: number;
  /** Files that are parts of a secret by discovery have changed, and cannot be used. @param name of the secret. */
  readonly onRotationFailed: (name: string) => void;
}

/** What is wrong is looked at once more after this: half of it may not be written yet. */
const SETTLE_MS = 1_000;
/** More than a tick, and less than files have been left alone before they are read. */
const TICK_MS = 50;
/** Owners that workers make contexts for before they have said that they are done with them. */
const MAX_UNCONFIRMED = 16;
/** A worker that does not answer holds nothing up for longer. */
const CONFIRM_LIMIT_MS = 2_000;

interface Watched {
  readonly owner: TlsOwner;
  readonly scope: Scope;
  readonly stats: ReturnType<typeof allocateStats>;
  /** Keys of those that it is made of. */
  readonly secrets: ReadonlySet<string>;
  files: readonly TlsFile[];
  endWatch: () => void;
  isGone: boolean;
}

interface Change {
  readonly paths: Set<string>;
  /** Names of secrets by discovery. */
  readonly secrets: Set<string>;
  /** It has been found wrong before. */
  isRetry: boolean;
}

export class TlsReloads {
  readonly #deps: TlsReloadsDependencies;
  readonly #watched = new Map<object, Watched>();
  #changes = new Map<Watched, Change>();
  readonly #endRetries = new Set<() => void>();
  /** While there is something to be read. */
  #reading: Promise<void> | undefined;

  constructor(deps: TlsReloadsDependencies) {
    this.#deps = deps;
  }

  /** @param key what `remove` is told: the listener or cluster itself. */
  add(key: object, owner: TlsOwner): void {
    const contexts = owner.contexts.filter((tls) => tls !== undefined);
    if (contexts.length === 0) return;
    const scope = this.#deps.stats.scope(owner.statPrefix);
    const stats = allocateStats(scope);
    const secrets = new Set(
      contexts.flatMap((context) => context.secrets.map(({ name, source }) => secretKey(name, source))),
    );
    const watched: Watched = { owner, scope, stats, secrets, files: [], endWatch: () => {}, isGone: false };
    this.#watched.set(key, watched);
    this.#watch(watched, filesOf(contexts), this.#deps.readAtMs);
  }

  /** It has no handshakes any more. @param key perhaps of one that was never added. */
  remove(key: object): void {
    const watched = this.#watched.get(key);
    if (watched === undefined) return;
    this.#watched.delete(key);
    watched.isGone = true;
    this.#changes.delete(watched);
    watched.endWatch();
    watched.scope.close();
  }

  /** Another one has come by discovery. @returns when the contexts are made of it that it belongs to. */
  async secretChanged(key: string, name: string): Promise<void> {
    for (const watched of this.#watched.values()) if (watched.secrets.has(key)) this.#note(watched, [], [name], false);
    await this.#read();
  }

  /**
   * Puts secrets in their places that have come, before anybody shakes hands by the contexts of an owner.
   * @param key as of `add`, which may have been told of it. @param apply given those that are others for it, if there are any.
   */
  complete<Settings extends TlsSettings>(
    key: object,
    owner: TlsOwner<Settings>,
    apply: (changed: ChangedContexts<Settings>) => void,
  ): void {
    if (!owner.contexts.some((context) => context !== undefined && context.secrets.length > 0)) return;
    const { stats, input, log } = this.#deps;
    const changed = new Map<number, ChangedContext<Settings>>();
    const faults: string[] = [];
    const contexts = owner.read(new TlsReader(input()));
    for (const [index, former] of owner.contexts.entries()) {
      const context = contexts[index];
      if (former === undefined || context === undefined || former.secrets.length === 0) continue;
      if (context.faults.length > 0) faults.push(...context.faults.map(textOf));
      else if (!isDeepStrictEqual(context.settings, former)) changed.set(index, context);
    }
    const scope = stats.scope(owner.statPrefix);
    const counts = allocateStats(scope);
    if (faults.length > 0) {
      counts.add('ssl_context_update_failed');
      log.warning(`${namesOf([owner])}: secrets that have come cannot be used: ${faults.join('; ')}`);
    }
    if (changed.size > 0) {
      apply(changed);
      counts.add('ssl_context_update_by_sds', changed.size);
    }
    scope.close();
    const watched = this.#watched.get(key);
    if (watched !== undefined) this.#watch(watched, filesOf(owner.contexts), this.#deps.clock.wallMs() - TICK_MS);
  }

  close(): void {
    for (const key of [...this.#watched.keys()]) this.remove(key);
    for (const end of this.#endRetries) end();
  }

  /** @param readAtMs when they were read, milliseconds of Unix time, or before that. */
  #watch(watched: Watched, files: readonly TlsFile[], readAtMs: number): void {
    if (isDeepStrictEqual(files, watched.files)) return;
    watched.files = files;
    watched.endWatch();
    watched.endWatch = this.#deps.watches.follow(files, readAtMs, (paths) => this.#changed(watched, paths, [], false));
  }

  #changed(watched: Watched, paths: Iterable<string>, secrets: Iterable<string>, isRetry: boolean): void {
    this.#note(watched, paths, secrets, isRetry);
    this.#deps.faults.run('reading TLS contexts again', () => this.#read());
  }

  #note(watched: Watched, paths: Iterable<string>, secrets: Iterable<string>, isRetry: boolean): void {
    if (watched.isGone) return;
    const change = this.#changes.get(watched) ?? { paths: new Set(), secrets: new Set(), isRetry };
    for (const path of paths) change.paths.add(path);
    for (const name of secrets) change.secrets.add(name);
    change.isRetry &&= isRetry;
    this.#changes.set(watched, change);
  }

  /** Resolves when all that have been noted are read. */
  #read(): Promise<void> {
    this.#reading ??= this.#readAll();
    return this.#reading;
  }

  async #readAll(): Promise<void> {
    // All that are told of the same change.
    await Promise.resolve();
    try {
      while (this.#changes.size > 0) await this.#round();
    } finally {
      this.#reading = undefined;
    }
  }

  async #round(): Promise<void> {
    const changes = this.#changes;
    this.#changes = new Map();
    const round = new Round(this.#deps);
    const retries: (readonly [Watched, Change])[] = [];
    const slice = new TimeSlice();
    for (const [watched, change] of changes) {
      if (watched.isGone) continue;
      // Times of files are those of the last tick of the system.
      const readAtMs = this.#deps.clock.wallMs() - TICK_MS;
      const { files, isWrong } = await round.take(watched, change);
      this.#watch(watched, files, readAtMs);
      if (isWrong && !change.isRetry) retries.push([watched, change]);
      if (slice.isOverNow()) await slice.rest();
    }
    round.end();
    if (retries.length > 0) this.#retryLater(retries);
  }

  #retryLater(retries: readonly (readonly [Watched, Change])[]): void {
    const end = this.#deps.clock.after(SETTLE_MS, () => {
      this.#endRetries.delete(end);
      for (const [watched, { paths, secrets }] of retries) this.#changed(watched, paths, secrets, true);
    });
    this.#endRetries.add(end);
  }
}

/** Of several owners whose files have changed at a time. */
class Round {
  readonly #deps: TlsReloadsDependencies;
  readonly #reader: TlsReader;
  #unconfirmed: Promise<void>[] = [];
  /** By text. */
  readonly #told = { info: new Map<string, TlsOwner[]>(), warning: new Map<string, TlsOwner[]>() };
  /** Secrets whose files cannot be used. */
  readonly #failedRotations = new Set<string>();

  constructor(deps: TlsReloadsDependencies) {
    this.#deps = deps;
    this.#reader = new TlsReader(deps.input());
  }

  /** @returns the files that count from now on, and whether one of them is wrong. */
  async take(
    watched: Watched,
    change: Change,
  ): Promise<{ readonly files: readonly TlsFile[]; readonly isWrong: boolean }> {
    const { owner } = watched;
    const contexts = owner.read(this.#reader);
    const changed = new Map<number, ChangedContext>();
    const files: TlsFile[] = [];
    let isWrong = false;
    for (const [index, former] of owner.contexts.entries()) {
      const context = contexts[index];
      if (former === undefined || context === undefined) continue;
      files.push(...former.files, ...context.files);
      if (context.faults.length > 0) {
        isWrong = true;
        if (change.isRetry) this.#refused(watched, context, change);
        continue;
      }
      for (const fault of context.warnings) this.#tell('warning', textOf(fault), owner);
      if (!isDeepStrictEqual(context.settings, former)) changed.set(index, context);
    }
    if (changed.size > 0) await this.#publish(watched, changed, change);
    // Former files count while something is wrong with the others.
    const current = isWrong ? files : contexts.flatMap((context) => context?.files ?? []);
    return { files: distinct(current), isWrong };
  }

  end(): void {
    for (const name of this.#failedRotations) this.#deps.onRotationFailed(name);
    for (const level of ['info', 'warning'] as const) {
      for (const [text, owners] of this.#told[level]) this.#deps.log[level](`${namesOf(owners)}: ${text}`);
    }
  }

  #refused({ owner, stats }: Watched, { faults, files }: ReadContext, { paths }: Change): void {
    stats.add('ssl_context_update_failed');
    for (const { path, secret } of files) {
      if (secret !== undefined && paths.has(path)) this.#failedRotations.add(secret);
    }
    this.#tell('warning', `TLS goes on with what it had: ${faults.map(textOf).join('; ')}`, owner);
  }

  async #publish(watched: Watched, changed: ChangedContexts, { paths, secrets }: Change): Promise<void> {
    const { owner, stats } = watched;
    const places = [...paths, ...[...secrets].map((name) => `secret ${name}`)];
    this.#tell('info', `TLS goes by what has changed in ${places.join(', ')}`, owner);
    const { clock } = this.#deps;
    const applied = Promise.withResolvers<void>();
    const endWait = clock.after(CONFIRM_LIMIT_MS, () => applied.resolve());
    owner.secure(changed, () => {
      endWait();
      applied.resolve();
      if (watched.isGone) return;
      for (const { settings } of changed.values()) {
        const isOfSecret =
          settings.secrets.some(({ name }) => secrets.has(name)) ||
          settings.files.some(({ secret, path }) => secret !== undefined && paths.has(path));
        stats.add(isOfSecret ? 'ssl_context_update_by_sds' : 'ssl_context_update_by_file');
      }
    });
    this.#unconfirmed.push(applied.promise);
    if (this.#unconfirmed.length < MAX_UNCONFIRMED) return;
    await Promise.all(this.#unconfirmed);
    this.#unconfirmed = [];
  }

  #tell(level: 'info' | 'warning', text: string, owner: TlsOwner): void {
    const owners = this.#told[level].get(text);
    if (owners === undefined) this.#told[level].set(text, [owner]);
    else if (!owners.includes(owner)) owners.push(owner);
  }
}

function allocateStats(scope: Scope) {
  return scope.allocate(SSL_SOCKET_FACTORY_STATS);
}

/** `listener web and 3 more`. */
function namesOf([first, ...others]: readonly TlsOwner[]): string {
  const { kind, name } = first!;
  return others.length === 0 ? `${kind} ${name}` : `${kind} ${name} and ${others.length} more`;
}

function filesOf(contexts: readonly (TlsSettings | undefined)[]): readonly TlsFile[] {
  return distinct(contexts.flatMap((context) => context?.files ?? []));
}

/** One of each path for each secret. */
function distinct(files: readonly TlsFile[]): readonly TlsFile[] {
  const keys = new Map(files.map((file) => [`${file.path}\0${file.secret ?? ''}`, file]));
  return [...keys.values()];
}

function textOf({ at, text }: ReadFault): string {
  return `${at}: ${text}`;
}
