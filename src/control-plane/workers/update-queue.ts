// Updates of clusters on their way to the workers: those of one turn of the event loop go in one message, of which the sending costs
// more than what it says. Main thread.

import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { type ClusterSnapshot, type ClusterUpdate, type MainToWorker, packClusters } from '../../snapshot/index.ts';

/** A cluster that is still to be packed, beside those of the same message. */
export type QueuedUpdate =
  | Exclude<ClusterUpdate, { readonly type: 'cluster' }>
  | { readonly type: 'unpacked'; readonly generation: number; readonly cluster: ClusterSnapshot };

/** A worker takes so many over at once, while its clients wait. */
const MOST_UPDATES = 64;

export class UpdateQueue {
  readonly #faults: FaultBoundary;
  readonly #send: (message: MainToWorker) => void;
  #queued: QueuedUpdate[] = [];
  #isScheduled = false;

  /** @param send to all workers. */
  constructor(faults: FaultBoundary, send: (message: MainToWorker) => void) {
    this.#faults = faults;
    this.#send = send;
  }

  add(update: QueuedUpdate): void {
    this.#queued.push(update);
    if (this.#queued.length >= MOST_UPDATES) this.flush();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      const onTurnOver = (): void => this.#turnOver();
      setImmediate(this.#faults.handler('telling workers of updates', onTurnOver));
    }
  }

  #turnOver(): void {
    this.#isScheduled = false;
    this.flush();
  }

  /** Sends what there is: something is to be sent behind it. */
  flush(): void {
    if (this.#queued.length === 0) return;
    const queued = this.#queued;
    this.#queued = [];
    const updates = packed(queued);
    const [only] = updates;
    this.#send(updates.length === 1 ? only! : { type: 'updates', updates });
  }
}

function packed(queued: readonly QueuedUpdate[]): readonly ClusterUpdate[] {
  const clusters = packClusters(queued.flatMap((update) => (update.type === 'unpacked' ? [update.cluster] : [])));
  let next = 0;
  return queued.map((update) => {
    if (update.type !== 'unpacked') return update;
    return { type: 'cluster', generation: update.generation, cluster: clusters[next++]! };
  });
}
