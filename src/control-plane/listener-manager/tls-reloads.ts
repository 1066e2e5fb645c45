// Reads the TLS contexts of listeners again when the files change that they come from, and has the workers use what was read
// for handshakes from then on. What cannot be used changes nothing. Main thread.
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
import type { DownstreamTlsSettings, ListenerSettings, TlsFile } from '../../snapshot/index.ts';
import { type Scope, SSL_SOCKET_FACTORY_STATS, type StatsStore } from '../../stats/index.ts';
import type { FileWatches } from '../subscription/file-watches.ts';
import type { ActiveListener } from './active-listener.ts';
import { listenerStatPrefix } from './listener-snapshot.ts';
import { type SecretOutcome, SecretStats } from './secret-stats.ts';

/** By filter chain, the default one last. */
export type ChangedContexts = ReadonlyMap<number, DownstreamTlsSettings>;

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
  /** Has handshakes of a listener go by other settings. @param onApplied called once, when they do in every worker. */
  readonly secure: (listener: ActiveListener, changed: ChangedContexts, onApplied: () => void) => void;
}

/** What is wrong is looked at once more after this: half of it may not be written yet. */
const SETTLE_MS = 1_000;
/** More than a tick, and less than files have been left alone before they are read. */
const TICK_MS = 50;
/** Listeners that workers make contexts for before they have said that they are done with them. */
const MAX_UNCONFIRMED = 16;
/** A worker that does not answer holds nothing up for longer. */
const CONFIRM_LIMIT_MS = 2_000;

interface Watched {
  readonly listener: ActiveListener;
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
  readonly #watched = new Map<ActiveListener, Watched>();
  #changes = new Map<Watched, Change>();
  readonly #endRetries = new Set<() => void>();
  #isReading = false;

  constructor(deps: TlsReloadsDependencies) {
    this.#deps = deps;
    this.#secrets = new SecretStats(deps.stats, deps.clock);
  }

  /** A listener has been opened. */
  add(listener: ActiveListener): void {
    const contexts = contextsOf(listener.settings).filter((tls) => tls !== undefined);
    if (contexts.length === 0) return;
    const scope = this.#deps.stats.scope(`${listenerStatPrefix(listener.settings)}server_ssl_socket_factory.`);
    const stats = allocateStats(scope);
    const watched: Watched = { listener, scope, stats, files: [], endWatch: () => {}, isGone: false };
    this.#watched.set(listener, watched);
    this.#watch(watched, distinct(contexts.flatMap(({ files }) => files)), this.#deps.readAtMs);
  }

  /** It accepts no more. */
  remove(listener: ActiveListener): void {
    const watched = this.#watched.get(listener);
    if (watched === undefined) return;
    this.#watched.delete(listener);
    watched.isGone = true;
    this.#changes.delete(watched);
    watched.endWatch();
    this.#secrets.release(watched.files);
    watched.scope.close();
  }

  close(): void {
    for (const listener of [...this.#watched.keys()]) this.remove(listener);
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

/** Of several listeners whose files have changed at a time. */
class Round {
  readonly #deps: TlsReloadsDependencies;
  readonly #secrets: SecretStats;
  readonly #reader: TlsReader;
  #unconfirmed: Promise<void>[] = [];
  /** Listeners by what is told of them. */
  readonly #told = { info: new Map<string, string[]>(), warning: new Map<string, string[]>() };
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
    const { listener } = watched;
    const contexts = this.#reader.read(listener.message);
    const changed = new Map<number, DownstreamTlsSettings>();
    const files: TlsFile[] = [];
    let isWrong = false;
    for (const [index, former] of contextsOf(listener.settings).entries()) {
      const context = contexts[index];
      if (former === undefined || context === undefined) continue;
      files.push(...former.files, ...context.files);
      if (context.faults.length > 0) {
        isWrong = true;
        if (isRetry) this.#refused(watched, context, paths);
        continue;
      }
      for (const fault of context.warnings) this.#tell('warning', textOf(fault), listener.name);
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
      for (const [text, [first, ...others]] of this.#told[level]) {
        const who = others.length === 0 ? `listener ${first}` : `listener ${first} and ${others.length} more`;
        this.#deps.log[level](`${who}: ${text}`);
      }
    }
  }

  #refused({ listener, stats }: Watched, { faults, files }: ReadContext, paths: Set<string>): void {
    stats.add('ssl_context_update_failed');
    const isUnread = faults.some(({ at }) => at.endsWith('.sds_config'));
    this.#note(files, paths, isUnread ? 'failed' : 'rejected');
    this.#tell('warning', `TLS goes on with what it had: ${faults.map(textOf).join('; ')}`, listener.name);
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
    const { listener, stats } = watched;
    this.#tell('info', `TLS goes by what has changed in ${[...paths].join(', ')}`, listener.name);
    const { clock, secure } = this.#deps;
    const applied = Promise.withResolvers<void>();
    const endWait = clock.after(CONFIRM_LIMIT_MS, () => applied.resolve());
    secure(listener, changed, () => {
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

  #tell(level: 'info' | 'warning', text: string, listener: string): void {
    const listeners = this.#told[level].get(text);
    if (listeners === undefined) this.#told[level].set(text, [listener]);
    else if (!listeners.includes(listener)) listeners.push(listener);
  }
}

function allocateStats(scope: Scope) {
  return scope.allocate(SSL_SOCKET_FACTORY_STATS);
}

function contextsOf({ filterChains, defaultFilterChain }: ListenerSettings): (DownstreamTlsSettings | undefined)[] {
  return [...filterChains, ...(defaultFilterChain === null ? [] : [defaultFilterChain])].map(({ tls }) => tls);
}

/** One of each path for each secret. */
function distinct(files: readonly TlsFile[]): readonly TlsFile[] {
  const keys = new Map(files.map((file) => [`${file.path}\0${file.secret ?? ''}`, file]));
  return [...keys.values()];
}

function textOf({ at, text }: ReadFault): string {
  return `${at}: ${text}`;
}
