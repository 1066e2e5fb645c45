// What one owner wants of a file that holds a DiscoveryResponse, which is read at the start and each time that another one is moved
// over it. One response after the other; of several that come meanwhile the last. Main thread.

import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { Logger } from '../../log/index.ts';
import type { FileReader, FileSource } from './file-source.ts';
import type { Subscription, SubscriptionRequest } from './subscription.ts';

export interface FileSubscriptionDependencies {
  readonly source: FileSource;
  /** As messages name it. */
  readonly path: string;
  readonly log: Logger;
  readonly faults: FaultBoundary;
  /** It reads nothing any more. */
  readonly onClosed: () => void;
}

export class FileSubscription<Resource> implements Subscription, FileReader {
  readonly #request: Omit<SubscriptionRequest<Resource>, 'source'>;
  readonly #deps: FileSubscriptionDependencies;
  /** `again`: there is another file than the one that is being read. */
  #reading: 'no' | 'yes' | 'again' = 'no';
  #isClosed = false;

  constructor(request: Omit<SubscriptionRequest<Resource>, 'source'>, deps: FileSubscriptionDependencies) {
    this.#request = request;
    this.#deps = deps;
  }

  start(): void {
    this.#deps.source.join(this);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#deps.source.leave(this);
    this.#deps.onClosed();
  }

  read(): void {
    if (this.#reading !== 'no') {
      this.#reading = 'again';
      return;
    }
    this.#reading = 'yes';
    this.#deps.faults.run(`taking over ${this.#deps.path}`, async () => {
      try {
        await this.#takeOver();
      } finally {
        const isOutdated = this.#reading === 'again';
        this.#reading = 'no';
        if (isOutdated && !this.#isClosed) this.#deps.source.tellLater(this);
      }
    });
  }

  async #takeOver(): Promise<void> {
    const { source, path, log } = this.#deps;
    const { names, type, stats, owner } = this.#request;
    const attempt = stats.attempt();
    const { opened } = source;
    if (opened === undefined) {
      attempt.failed();
      owner.onFailed();
      return;
    }
    const resourceType = type();
    const response = opened.of(resourceType, names);
    let refusals: readonly string[];
    try {
      refusals = await owner.onResponse(response);
    } catch (error) {
      attempt.rejected();
      owner.onFailed();
      throw error;
    }
    source.took(resourceType.typeName, response.version, refusals);
    if (refusals.length === 0) {
      attempt.updated(response.version);
      return;
    }
    attempt.rejected();
    for (const refusal of refusals) log.warning(`${path} is refused: ${refusal}`);
  }
}
