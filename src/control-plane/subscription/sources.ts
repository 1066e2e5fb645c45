// From where a configuration source says that resources come, to what brings them: files, and management servers. Main thread.

import type { FileSourceSettings } from '../../snapshot/index.ts';
import { FileSource } from './file-source.ts';
import { FileSubscription } from './file-subscription.ts';
import type { FileWatches } from './file-watches.ts';
import type { ManagementServers, ManagementServersDependencies } from './management-servers.ts';
import { ResponseReader, startResponseThread } from './response-reader.ts';
import type { SourceReport } from './source-report.ts';
import type { Subscription, SubscriptionRequest, Subscriptions } from './subscription.ts';

export interface SourcesDependencies extends ManagementServersDependencies {
  readonly watches: Pick<FileWatches, 'follow'>;
  /** Flags of Node for threads; those of the process when undefined. */
  readonly threadFlags: readonly string[] | undefined;
}

export class Sources implements Subscriptions {
  readonly #deps: SourcesDependencies;
  readonly #reader: ResponseReader;
  /** By path and folder, and how they are watched: those that somebody asks. */
  readonly #files = new Map<string, FileSource>();
  #loading: Promise<ManagementServers> | undefined;
  /** Undefined before the first is to be asked. */
  #servers: ManagementServers | undefined;
  #isClosed = false;

  constructor(deps: SourcesDependencies) {
    this.#deps = deps;
    this.#reader = new ResponseReader({ ...deps, startThread: () => startResponseThread(deps.threadFlags) });
  }

  subscribe<Resource>(request: SubscriptionRequest<Resource>): Subscription {
    const { origin } = request.source;
    if (origin.kind === 'file') return this.#toFile(origin, request);
    return this.#later(async () => (await this.#load()).subscribe(origin, request));
  }

  /** Those that anybody asks, servers first. */
  *reports(): Generator<SourceReport> {
    if (this.#servers !== undefined) yield* this.#servers.reports();
    for (const source of this.#files.values()) yield source.report();
  }

  /** Streams end, and nothing is told any more. */
  close(): void {
    this.#isClosed = true;
    this.#servers?.close();
    this.#reader.close();
  }

  #toFile<Resource>(settings: FileSourceSettings, request: SubscriptionRequest<Resource>): Subscription {
    const { log, faults } = this.#deps;
    const { path, watchedFolder } = settings;
    const { followsWrites = false } = request;
    const key = `${path}\0${watchedFolder ?? ''}\0${followsWrites}`;
    const deps = { ...this.#deps, reader: this.#reader };
    const source = this.#files.get(key) ?? new FileSource(settings, followsWrites, deps);
    this.#files.set(key, source);
    const onClosed = (): void => {
      if (!source.hasReaders && this.#files.get(key) === source) this.#files.delete(key);
    };
    return new FileSubscription(request, { source, path, log, faults, onClosed });
  }

  /** @param subscribe when what it needs has been loaded. */
  #later(subscribe: () => Promise<Subscription>): Subscription {
    const { faults } = this.#deps;
    let subscription: Subscription | undefined;
    let isWanted = false;
    const asked = new Set<string>();
    return {
      ask: (name) => {
        asked.add(name);
        subscription?.ask?.(name);
      },
      unask: (name) => {
        asked.delete(name);
        subscription?.unask?.(name);
      },
      start: () => {
        isWanted = true;
        faults.run('asking a management server', async () => {
          const subscribed = await subscribe();
          if (!isWanted || this.#isClosed) return;
          subscription = subscribed;
          subscription.start();
          for (const name of asked) subscription.ask?.(name);
        });
      },
      close: () => {
        isWanted = false;
        subscription?.close();
        subscription = undefined;
      },
    };
  }

  #load(): Promise<ManagementServers> {
    this.#loading ??= import('../at-need.ts').then(({ ManagementServers }) => {
      this.#servers = new ManagementServers(this.#deps);
      return this.#servers;
    });
    return this.#loading;
  }
}
