// The way of log records from a worker to the main thread, in two halves. A port between threads has no bound of its
// own: when main is slow, messages pile up in memory. So main confirms what it has taken, and a worker that has too much
// on the way drops its newest records, and counts them.
//
//   worker: RelaySink ── log {record, dropped} ──► main: RelayReceiver ──► sink
//              ▲ └──────── log-dropped ─────────────►  │
//              └───────────── log-taken {cost} ────────┘

import type { MainToWorker, WorkerLogRecord, WorkerToMain } from '../snapshot/index.ts';
import type { LogRecord, LogSink } from './record.ts';

/** On the way from one worker, in characters of messages and what a record costs beside them. */
export const MAX_COST_UNDER_WAY = 1024 * 1024;
/** Main confirms in steps of this, so that few messages go back. */
const CONFIRMED_COST = MAX_COST_UNDER_WAY / 16;
const COST_OF_RECORD = 256;

function costOf(record: WorkerLogRecord): number {
  return COST_OF_RECORD + record.message.length + record.stack.length;
}

/** A worker's sink. Never throws. */
export class RelaySink implements LogSink {
  readonly #post: (message: WorkerToMain) => void;
  #costUnderWay = 0;
  /** Records lost that main does not know of. */
  #dropped = 0;

  constructor(post: (message: WorkerToMain) => void) {
    this.#post = post;
  }

  write(record: LogRecord): void {
    if (this.#costUnderWay >= MAX_COST_UNDER_WAY || !this.#tryPost({ type: 'log', record, dropped: this.#dropped })) {
      this.#dropped += 1;
      return;
    }
    this.#dropped = 0;
    this.#costUnderWay += costOf(record);
  }

  /** Main has taken records of this cost. */
  confirm(cost: number): void {
    this.#costUnderWay -= cost;
    if (this.#dropped > 0 && this.#tryPost({ type: 'log-dropped', count: this.#dropped })) this.#dropped = 0;
  }

  /** A record that cannot be cloned, or a port that is closed, is one record lost. */
  #tryPost(message: WorkerToMain): boolean {
    try {
      this.#post(message);
      return true;
    } catch {
      return false;
    }
  }
}

/** The main thread's half, one for each worker. */
export class RelayReceiver {
  readonly #post: (message: MainToWorker) => void;
  #unconfirmedCost = 0;

  constructor(post: (message: MainToWorker) => void) {
    this.#post = post;
  }

  /** Call when the record has been dealt with. */
  taken(record: WorkerLogRecord): void {
    this.#unconfirmedCost += costOf(record);
    if (this.#unconfirmedCost < CONFIRMED_COST) return;
    this.#post({ type: 'log-taken', cost: this.#unconfirmedCost });
    this.#unconfirmedCost = 0;
  }
}
