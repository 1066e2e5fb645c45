// The times of a pooled connection, whatever its protocol, and what they count: how long it may take to connect, how long
// it may carry nothing, how old it may become.
//
//   CONNECTING ──connected──► IDLE ◄──idle, used──► USED ──ended──► over
//       └──time over: ended, the owner is told

import type { Socket } from 'node:net';
import { CLUSTER_STATS } from '../../../stats/index.ts';
import { type TimeoutOwner, TimerEntry } from '../../network/timer-wheel.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { CircuitBreaker } from '../circuit-breaker.ts';
import { UpstreamConnectionStats } from '../connection-stats.ts';
import type { PoolHost } from './pool-host.ts';

const { upstream_cx_idle_timeout, upstream_cx_max_duration_reached } = CLUSTER_STATS.index;

export interface LifeOwner {
  /** It has not come about in time: its life has ended, its socket has not. */
  onConnectTimeout(): void;
  /** As PooledConnection says. */
  close(): void;
  closeAfterStreams(): void;
}

export class ConnectionLife implements TimeoutOwner {
  readonly stats: UpstreamConnectionStats;
  /** Another one's where a handshake decides on the protocol. */
  owner: LifeOwner;
  readonly #context: WorkerContext;
  readonly #host: PoolHost;
  /** Of the attempt to connect, then of the time without a stream. */
  readonly #timer = new TimerEntry(this);
  #ageLimit: TimerEntry | null = null;
  #isConnecting = true;

  /** @param breaker under which it has its place. */
  constructor(context: WorkerContext, host: PoolHost, breaker: CircuitBreaker, owner: LifeOwner) {
    this.#context = context;
    this.#host = host;
    this.owner = owner;
    const startMs = context.clock.monotonicMs();
    this.stats = new UpstreamConnectionStats(context, host, breaker, startMs);
    context.wheel.arm(this.#timer, startMs + host.cluster.settings.connectTimeoutMs);
  }

  /** It may carry streams, and carries none. */
  connected(nowMs: number): void {
    this.#isConnecting = false;
    this.stats.connected(nowMs);
    this.idle(nowMs);
    this.#limitAge(nowMs);
  }

  /** It has not come about. @param error what the system said of it, if anything. */
  connectFailed(error: NodeJS.ErrnoException | null): void {
    this.ended(false);
    this.stats.connectFailed(error);
  }

  /** It carries streams. */
  used(): void {
    this.#context.wheel.disarm(this.#timer);
  }

  /** It carries none any more. */
  idle(nowMs: number): void {
    const { idleTimeoutMs } = this.#host.cluster.settings;
    if (idleTimeoutMs > 0) this.#context.wheel.arm(this.#timer, nowMs + idleTimeoutMs);
    else this.#context.wheel.disarm(this.#timer);
  }

  /** The part of every end: no timer, no place under the circuit breaker, no active connection. */
  ended(isLocal: boolean): void {
    const { wheel } = this.#context;
    wheel.remove(this.#timer);
    if (this.#ageLimit !== null) wheel.remove(this.#ageLimit);
    this.stats.closed(isLocal);
  }

  onTimeout(): void {
    if (this.#isConnecting) {
      this.ended(true);
      this.stats.connectTimedOut();
      this.owner.onConnectTimeout();
    } else {
      this.stats.count(upstream_cx_idle_timeout);
      this.owner.close();
    }
  }

  #limitAge(nowMs: number): void {
    const { maxConnectionDurationMs } = this.#host.cluster.settings;
    if (maxConnectionDurationMs === 0) return;
    this.#ageLimit = new TimerEntry({ onTimeout: () => this.#onAgeLimit() });
    this.#context.wheel.arm(this.#ageLimit, nowMs + maxConnectionDurationMs);
  }

  #onAgeLimit(): void {
    this.stats.count(upstream_cx_max_duration_reached);
    this.owner.closeAfterStreams();
  }
}

/** A connection that has come about, for the codec of the protocol that was chosen meanwhile. */
export interface BegunConnection {
  readonly life: ConnectionLife;
  readonly socket: Socket;
}
