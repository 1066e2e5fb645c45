// From where a configuration source says that resources come, to what brings them. Main thread.

import type { FileSourceSettings } from '../../snapshot/index.ts';
import { FileSource, type FileSourceDependencies } from './file-source.ts';
import { FileSubscription } from './file-subscription.ts';
import type { Subscription, SubscriptionRequest, Subscriptions } from './subscription.ts';

export type SourcesDependencies = FileSourceDependencies;

export class Sources implements Subscriptions {
  readonly #deps: SourcesDependencies;
  /** By path and folder: those that somebody asks. */
  readonly #files = new Map<string, FileSource>();

  constructor(deps: SourcesDependencies) {
    this.#deps = deps;
  }

  subscribe<Resource>(request: SubscriptionRequest<Resource>): Subscription {
    return this.#subscribeToFile(request.source.origin, request);
  }

  #subscribeToFile<Resource>(settings: FileSourceSettings, request: SubscriptionRequest<Resource>): Subscription {
    const { log, faults } = this.#deps;
    const { path, watchedFolder } = settings;
    const key = `${path}\0${watchedFolder ?? ''}`;
    const source = this.#files.get(key) ?? new FileSource(settings, this.#deps);
    this.#files.set(key, source);
    const onClosed = (): void => {
      if (!source.hasReaders && this.#files.get(key) === source) this.#files.delete(key);
    };
    return new FileSubscription(request, { source, path, log, faults, onClosed });
  }
}
