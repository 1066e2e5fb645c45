// Resources from a file that holds a DiscoveryResponse, which is read at the start and each time that another one is moved over it.
// Main thread; a file is read as a whole, and one after the other.

import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { openResponseFile, type UnknownFieldPolicy } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { FileSourceSettings } from '../../snapshot/index.ts';
import { MoveWatch, type MoveWatchEvents } from './move-watch.ts';
import type { Subscription, SubscriptionRequest } from './subscription.ts';

export interface FileSubscriptionDependencies {
  readonly unknownFields: UnknownFieldPolicy;
  readonly log: Logger;
  readonly faults: FaultBoundary;
}

export class FileSubscription<Resource> implements Subscription {
  readonly #source: FileSourceSettings;
  readonly #request: Omit<SubscriptionRequest<Resource>, 'source'>;
  readonly #deps: FileSubscriptionDependencies;
  #watch: MoveWatch | undefined;
  /** `again`: there is another file than the one that is being read. */
  #reading: 'no' | 'yes' | 'again' = 'no';
  #isClosed = false;

  constructor(
    source: FileSourceSettings,
    request: Omit<SubscriptionRequest<Resource>, 'source'>,
    deps: FileSubscriptionDependencies,
  ) {
    this.#source = source;
    this.#request = request;
    this.#deps = deps;
  }

  start(): void {
    const { log, faults } = this.#deps;
    const { path, watchedFolder } = this.#source;
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
    this.#isClosed = true;
    this.#watch?.close();
  }

  #read(): void {
    if (this.#reading !== 'no') {
      this.#reading = 'again';
      return;
    }
    this.#reading = 'yes';
    this.#deps.faults.run(`taking over ${this.#source.path}`, async () => {
      try {
        await this.#takeOver();
      } finally {
        const isOutdated = this.#reading === 'again';
        this.#reading = 'no';
        if (isOutdated && !this.#isClosed) this.#read();
      }
    });
  }

  async #takeOver(): Promise<void> {
    const { path } = this.#source;
    const { names, type, stats, owner } = this.#request;
    const { unknownFields, log } = this.#deps;
    const attempt = stats.attempt();
    const response = openResponseFile(path, type(), unknownFields, names);
    if ('faults' in response) {
      attempt.failed();
      for (const fault of response.faults) log.warning(`resources are not taken over: ${fault}`);
      owner.onFailed();
      return;
    }
    for (const warning of response.warnings) log.warning(warning);
    let refusals: readonly string[];
    try {
      refusals = await owner.onResponse(response);
    } catch (error) {
      attempt.rejected();
      owner.onFailed();
      throw error;
    }
    if (refusals.length === 0) {
      attempt.updated(response.version);
      return;
    }
    attempt.rejected();
    for (const refusal of refusals) log.warning(`${path} is refused: ${refusal}`);
  }
}
