// Resources from a file that holds a DiscoveryResponse, which is read at the start and each time that another one is moved over it.
// Main thread; a file is read and taken as a whole.

import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { type FileSourceSettings, readResponseFile, type UnknownFieldPolicy } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import { MoveWatch, type MoveWatchEvents } from './move-watch.ts';
import type { Subscription, SubscriptionOwner } from './subscription.ts';
import type { SubscriptionStats } from './subscription-stats.ts';

type TypeName = Parameters<typeof readResponseFile>[1];
type ResourceOf<Name extends TypeName> =
  Exclude<ReturnType<typeof readResponseFile<Name>>, { readonly faults: unknown }> extends {
    readonly resources: readonly (infer Resource)[];
  }
    ? Resource
    : never;

export interface FileSubscriptionOptions<Name extends TypeName> {
  readonly source: FileSourceSettings;
  /** Full name of the resources' message. */
  readonly typeName: Name;
  readonly unknownFields: UnknownFieldPolicy;
  readonly stats: SubscriptionStats;
  readonly log: Logger;
  readonly faults: FaultBoundary;
  readonly owner: SubscriptionOwner<ResourceOf<Name>>;
}

export class FileSubscription<Name extends TypeName> implements Subscription {
  readonly #options: FileSubscriptionOptions<Name>;
  #watch: MoveWatch | undefined;

  constructor(options: FileSubscriptionOptions<Name>) {
    this.#options = options;
  }

  start(): void {
    const { source, log, faults } = this.#options;
    const { path, watchedFolder } = source;
    const events: MoveWatchEvents = {
      onMoved: () => {
        log.info(`${path} is read again: ${watchedFolder ?? path} has changed`);
        this.#read();
      },
      onError: (error) => log.warning(`${path} is not watched: ${errorMessage(error)}`),
    };
    // Watched first: what changes between the two is read twice rather than not at all.
    this.#watch =
      watchedFolder === undefined
        ? MoveWatch.ofPlace(path, faults, events)
        : MoveWatch.ofFolder(watchedFolder, faults, events);
    this.#read();
  }

  close(): void {
    this.#watch?.close();
  }

  #read(): void {
    const { source, typeName, unknownFields, stats, log, owner } = this.#options;
    const attempt = stats.attempt();
    const read = readResponseFile(source.path, typeName, unknownFields);
    if ('faults' in read) {
      attempt.failed();
      for (const fault of read.faults) log.warning(`resources are not taken over: ${fault}`);
      owner.onFailed();
      return;
    }
    for (const warning of read.warnings) log.warning(warning);
    const refusal = owner.onResources(read.resources as readonly ResourceOf<Name>[], read.version);
    if (refusal === undefined) {
      attempt.updated(read.version);
      return;
    }
    attempt.rejected();
    log.warning(`${source.path} is refused: ${refusal}`);
    owner.onFailed();
  }
}
