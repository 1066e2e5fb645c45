// Reads the TLS contexts of listeners and clusters again when the files change that they come from, and has their handshakes go
// by what was read from then on. What cannot be used changes nothing. Main thread.
//
//   files ──changed──► read anew, equal contexts once ──right──► published, when it is something else
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
import type { FileWatches } from '../subscription/file-watches.ts';
import { type SecretOutcome, SecretStats } from './secret-stats.ts';

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

/** By place. */
export type ChangedContexts<Settings extends TlsSettings = TlsSettings> = ReadonlyMap<number, Settings>;

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
  files: readonly TlsFile[];
  endWatch: () => void;
  isGone: boolean;
}

interface Change {
  readonly paths: Set<string>;
  /** It has been found wrong before. */
  isRetry: boolean;
}

export class TlsReloads {
  readonly #deps: TlsReloadsDependencies;
  readonly #secrets: SecretStats;
  readonly #watched = new Map<object, Watched>();
  #changes = new Map<Watched, Change>();
  readonly #endRetries = new Set<() => void>();
  #isReading = false;

  constructor(deps: TlsReloadsDependencies) {
    this.#deps = deps;
    this.#secrets = new SecretStats(deps.stats, deps.clock);
  }

  /** @param key what `remove` is told: the listener or cluster itself. */
  add(key: object, owner: TlsOwner): void {
    const contexts = owner.contexts.filter((tls) => tls !== undefined);
    if (contexts.length === 0) return;
    const scope = this.#deps.stats.scope(owner.statPrefix);
    const stats = allocateStats(scope);
    const watched: Watched = { owner, scope, stats, files: [], endWatch: () => {}, isGone: false };
    this.#watched.set(key, watched);
    this.#watch(watched, distinct(contexts.flatMap(({ files }) => files)), this.#deps.readAtMs);
  }

  /** It has no handshakes any more. @param key perhaps of one that was never added. */
  remove(key: object): void {
    const watched = this.#watched.get(key);
    if (watched === undefined) return;
    this.#watched.delete(key);
    watched.isGone = true;
    this.#changes.delete(watched);
    watched.endWatch();
    this.#secrets.release(watched.files);
    watched.scope.close();
  }

  close(): void {
    for (const key of [...this.#watched.keys()]) this.remove(key);
    for (const end of this.#endRetries) end();
  }

  /** @param readAtMs when they were read, milliseconds of Unix time, or before that. */
  #watch(watched: Watched, files: readonly TlsFile[], readAtMs: number): void {
    if (isDeepStrictEqual(files, watched.files)) return;
    this.#secrets.hold(files);
    this.#secrets.release(watched.files);
    watched.files = files;
    watched.endWatch();
    watched.endWatch = this.#deps.watches.follow(files, readAtMs, (paths) => this.#changed(watched, paths, false));
  }

  #changed(watched: Watched, paths: Iterable<string>, isRetry: boolean): void {
    if (watched.isGone) return;
    const change = this.#changes.get(watched) ?? { paths: new Set(), isRetry };
    for (const path of paths) change.paths.add(path);
    change.isRetry &&= isRetry;
    this.#changes.set(watched, change);
    this.#deps.faults.run('reading TLS contexts again', () => this.#readAll());
  }

  async #readAll(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      // All that are told of the same change.
      await Promise.resolve();
      while (this.#changes.size > 0) await this.#round();
    } finally {
      this.#isReading = false;
    }
  }

  async #round(): Promise<void> {
    const changes = this.#changes;
    this.#changes = new Map();
    const round = new Round(this.#deps, this.#secrets);
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
      for (const [watched, { paths }] of retries) this.#changed(watched, paths, true);
    });
    this.#endRetries.add(end);
  }
}

/** Of several owners whose files have changed at a time. */
class Round {
  readonly #deps: TlsReloadsDependencies;
  readonly #secrets: SecretStats;
  readonly #reader: TlsReader;
  #unconfirmed: Promise<void>[] = [];
  /** By text. */
  readonly #told = { info: new Map<string, TlsOwner[]>(), warning: new Map<string, TlsOwner[]>() };
  readonly #outcomes = new Map<string, SecretOutcome>();

  constructor(deps: TlsReloadsDependencies, secrets: SecretStats) {
    this.#deps = deps;
    this.#secrets = secrets;
    this.#reader = new TlsReader(deps.input());
  }

  /** @returns the files that count from now on, and whether one of them is wrong. */
  async take(
    watched: Watched,
    { paths, isRetry }: Change,
  ): Promise<{ readonly files: readonly TlsFile[]; readonly isWrong: boolean }> {
    const { owner } = watched;
    const contexts = owner.read(this.#reader);
    const changed = new Map<number, TlsSettings>();
    const files: TlsFile[] = [];
    let isWrong = false;
    for (const [index, former] of owner.contexts.entries()) {
      const context = contexts[index];
      if (former === undefined || context === undefined) continue;
      files.push(...former.files, ...context.files);
      if (context.faults.length > 0) {
        isWrong = true;
        if (isRetry) this.#refused(watched, context, paths);
        continue;
      }
      for (const fault of context.warnings) this.#tell('warning', textOf(fault), owner);
      this.#note(context.files, paths, 'updated');
      if (!isDeepStrictEqual(context.settings, former)) changed.set(index, context.settings);
    }
    if (changed.size > 0) await this.#publish(watched, changed, paths);
    // Former files count while something is wrong with the others.
    const current = isWrong ? files : contexts.flatMap((context) => context?.files ?? []);
    return { files: distinct(current), isWrong };
  }

  end(): void {
    for (const [secret, outcome] of this.#outcomes) this.#secrets.attempted(secret, outcome);
    for (const level of ['info', 'warning'] as const) {
      for (const [text, owners] of this.#told[level]) this.#deps.log[level](`${namesOf(owners)}: ${text}`);
    }
  }

  #refused({ owner, stats }: Watched, { faults, files }: ReadContext, paths: Set<string>): void {
    stats.add('ssl_context_update_failed');
    const isUnread = faults.some(({ at }) => at.endsWith('.sds_config'));
    this.#note(files, paths, isUnread ? 'failed' : 'rejected');
    this.#tell('warning', `TLS goes on with what it had: ${faults.map(textOf).join('; ')}`, owner);
  }

  #note(files: readonly TlsFile[], paths: ReadonlySet<string>, outcome: SecretOutcome['response']): void {
    for (const { path, secret, holdsSecret } of files) {
      if (secret === undefined || !paths.has(path)) continue;
      const noted = this.#outcomes.get(secret) ?? { response: undefined, hasRotationFailed: false };
      if (holdsSecret)
        noted.response = noted.response === undefined || noted.response === 'updated' ? outcome : noted.response;
      else noted.hasRotationFailed ||= outcome !== 'updated';
      this.#outcomes.set(secret, noted);
    }
  }

  async #publish(watched: Watched, changed: ChangedContexts, paths: ReadonlySet<string>): Promise<void> {
    const { owner, stats } = watched;
    this.#tell('info', `TLS goes by what has changed in ${[...paths].join(', ')}`, owner);
    const { clock } = this.#deps;
    const applied = Promise.withResolvers<void>();
    const endWait = clock.after(CONFIRM_LIMIT_MS, () => applied.resolve());
    owner.secure(changed, () => {
      endWait();
      applied.resolve();
      if (watched.isGone) return;
      for (const { files } of changed.values()) {
        const isOfSecret = files.some(({ secret, path }) => secret !== undefined && paths.has(path));
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

/** One of each path for each secret. */
function distinct(files: readonly TlsFile[]): readonly TlsFile[] {
  const keys = new Map(files.map((file) => [`${file.path}\0${file.secret ?? ''}`, file]));
  return [...keys.values()];
}

function textOf({ at, text }: ReadFault): string {
  return `${at}: ${text}`;
}
