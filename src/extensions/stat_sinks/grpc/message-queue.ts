// What calls of a sink have in common: bytes that are on their way, up to a bound, and what became of the metrics in them.
// Main thread.

import type { StatSinkCounts } from '../../../control-plane/index.ts';

/** A message that finds more under way is dropped, unless it is the only one. */
const MOST_QUEUED_BYTES = 16 * 1024 * 1024;

export interface OutgoingMessage {
  readonly bytes: Buffer;
  /** How many are told of in it. */
  readonly metrics: number;
}

export class MessageQueue {
  readonly #counts: StatSinkCounts;
  #bytes = 0;

  constructor(counts: StatSinkCounts) {
    this.#counts = counts;
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** @returns false when it has been dropped. */
  begin({ bytes, metrics }: OutgoingMessage): boolean {
    if (this.#bytes > 0 && this.#bytes + bytes.length > MOST_QUEUED_BYTES) {
      this.drop(metrics);
      return false;
    }
    this.#add(bytes.length);
    return true;
  }

  /** It has arrived, as far as anybody can tell, or it is lost. */
  end({ bytes, metrics }: OutgoingMessage, isSent: boolean): void {
    this.#add(-bytes.length);
    this.#counts.add(isSent ? 'metrics_sent' : 'metrics_dropped', metrics);
  }

  drop(metrics: number): void {
    this.#counts.add('metrics_dropped', metrics);
  }

  #add(bytes: number): void {
    this.#bytes += bytes;
    this.#counts.set('queued_bytes', this.#bytes);
  }
}
