// What bounds a client's connection beside its silence, of whatever protocol: its age, and how many requests it carries. There
// is none of these where the connection manager sets no such bounds.
//
//   YOUNG ──its duration──► AGED: responses say so ──grace──► OVER: ends as soon as nothing runs on it
//
// What the last request means is its codec's affair, which knows how to tell the client.

import type { ConnectionLifeSettings } from '../../../snapshot/index.ts';
import { HTTP_STATS } from '../../../stats/index.ts';
import { type TimeoutOwner, TimerEntry } from '../../network/timer-wheel.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { CodecOwner, ServerConnection } from './server-connection.ts';

const { downstream_cx_max_duration_reached, downstream_cx_max_requests_reached } = HTTP_STATS.index;

/** The connection, as its limits see it. */
export interface MortalConnection extends Pick<ServerConnection, 'connection' | 'drain'> {
  /**
   * It has reached its age.
   * @returns how long the client may still take to end it by itself, before `drain`; 0 when there is nothing to wait for.
   */
  onAged(): number;
}

export class ConnectionLife implements TimeoutOwner {
  readonly #context: WorkerContext;
  readonly #owner: CodecOwner;
  readonly #connection: MortalConnection;
  readonly #timer: TimerEntry;
  readonly #maxRequests: number;
  #requests = 0;
  #isAged = false;
  #isOver = false;

  constructor(
    context: WorkerContext,
    owner: CodecOwner,
    connection: MortalConnection,
    { maxDurationMs, maxRequests }: ConnectionLifeSettings,
  ) {
    this.#context = context;
    this.#owner = owner;
    this.#connection = connection;
    this.#maxRequests = maxRequests;
    this.#timer = new TimerEntry(this);
    if (maxDurationMs > 0) context.wheel.arm(this.#timer, connection.connection.downstream.startMs + maxDurationMs);
  }

  /** Null where the settings set none. */
  static of(context: WorkerContext, owner: CodecOwner, connection: MortalConnection): ConnectionLife | null {
    const { connectionLife } = owner.settings;
    return connectionLife === undefined ? null : new ConnectionLife(context, owner, connection, connectionLife);
  }

  /** It is older than it should become. */
  get isAged(): boolean {
    return this.#isAged;
  }

  /** The client has had its time to end it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** A request begins. @returns whether it is the last one, or beyond it. */
  onRequest(): boolean {
    this.#requests += 1;
    if (this.#maxRequests === 0 || this.#requests < this.#maxRequests) return false;
    this.#count(downstream_cx_max_requests_reached);
    return true;
  }

  onTimeout(nowMs: number): void {
    if (this.#isAged) {
      this.#isOver = true;
      this.#connection.drain();
      return;
    }
    this.#isAged = true;
    this.#count(downstream_cx_max_duration_reached);
    const graceMs = this.#connection.onAged();
    if (graceMs > 0) this.#context.wheel.arm(this.#timer, nowMs + graceMs);
  }

  /** The connection is over. */
  remove(): void {
    this.#context.wheel.remove(this.#timer);
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#owner.statBase + stat]! += 1;
  }
}
