// What one connection to a host of a cluster counts, from the attempt to open it to its end: in the stats of cluster
// and host, in the host's record that all workers see, and under the circuit breaker.
//
//   OPEN ──connected──► its requests, one after the other ──► closed
//     └──closed, and connectFailed or connectTimedOut
//
// Whoever makes it has acquired the place of the connection at its host (Host.tryAcquireConnection), and that of each
// request under the breaker before it begins; both are given back here.

import { CLUSTER_STATS, HOST_STATS } from '../../stats/index.ts';
import { BufferedBytes } from '../network/buffered-bytes.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import { isBindFailure } from './pool/failure.ts';

const {
  bind_errors,
  upstream_cx_active,
  upstream_cx_connect_fail,
  upstream_cx_connect_ms,
  upstream_cx_connect_timeout,
  upstream_cx_destroy,
  upstream_cx_destroy_local,
  upstream_cx_destroy_local_with_active_rq,
  upstream_cx_destroy_remote,
  upstream_cx_destroy_remote_with_active_rq,
  upstream_cx_destroy_with_active_rq,
  upstream_cx_length_ms,
  upstream_cx_total,
  upstream_cx_rx_bytes_buffered,
  upstream_cx_tx_bytes_buffered,
  upstream_cx_tx_bytes_total,
  upstream_flow_control_backed_up_total,
  upstream_flow_control_drained_total,
  upstream_flow_control_paused_reading_total,
  upstream_flow_control_resumed_reading_total,
  upstream_rq_active,
  upstream_rq_per_cx,
  upstream_rq_total,
} = CLUSTER_STATS.index;
const { cx_active, cx_connect_fail, cx_total, rq_active, rq_total } = HOST_STATS.index;

/** Where a host counts. */
interface CountedHost {
  readonly cluster: { readonly statBase: number };
  readonly statBase: number;
  readonly record: number;
}

export class UpstreamConnectionStats {
  readonly #context: WorkerContext;
  readonly #breaker: CircuitBreaker;
  /** Address of the host's record. */
  readonly #record: number;
  readonly #clusterStats: number;
  readonly #hostStats: number;
  readonly connectionId: number;
  readonly startMs: number;
  readyMs = -1;
  #requests = 0;
  /** Bytes that have come and cannot be used yet. */
  readonly held: BufferedBytes;
  readonly #unsent: BufferedBytes;
  #isBackedUp = false;
  #isReadingPaused = false;

  constructor(context: WorkerContext, host: CountedHost, breaker: CircuitBreaker, startMs: number) {
    this.#context = context;
    this.#breaker = breaker;
    this.#record = host.record;
    this.#clusterStats = host.cluster.statBase;
    this.#hostStats = host.statBase;
    this.startMs = startMs;
    this.connectionId = context.nextConnectionId();
    this.held = new BufferedBytes(context, this.#clusterStats + upstream_cx_rx_bytes_buffered);
    this.#unsent = new BufferedBytes(context, this.#clusterStats + upstream_cx_tx_bytes_buffered);
    this.count(upstream_cx_total);
    this.count(upstream_cx_active);
    this.#countHost(cx_total, 1);
    this.#countHost(cx_active, 1);
  }

  /** Requests that have begun on this connection, of a protocol that has such. */
  get requests(): number {
    return this.#requests;
  }

  /** @param stat of CLUSTER_STATS. */
  count(stat: number, change = 1): void {
    this.#context.stats.values[this.#clusterStats + stat]! += change;
  }

  /** Another address of the host is tried for this connection. */
  attemptedAgain(): void {
    this.count(upstream_cx_total);
    this.#countHost(cx_total, 1);
  }

  connected(nowMs: number): void {
    this.readyMs = nowMs;
    this.#recordAge(upstream_cx_connect_ms, nowMs);
  }

  /** @param error what the system said of it, if anything. */
  connectFailed(error: NodeJS.ErrnoException | null): void {
    this.count(upstream_cx_connect_fail);
    this.#countHost(cx_connect_fail, 1);
    if (isBindFailure(error)) this.count(bind_errors);
  }

  connectTimedOut(): void {
    this.count(upstream_cx_connect_timeout);
    this.count(upstream_cx_connect_fail);
    this.#countHost(cx_connect_fail, 1);
  }

  /** The peer does not take what is written to it. @param unsentBytes that wait now. */
  backedUp(unsentBytes: number): void {
    this.#unsent.note(unsentBytes);
    if (this.#isBackedUp) return;
    this.#isBackedUp = true;
    this.count(upstream_flow_control_backed_up_total);
  }

  /** Nothing waits to be sent. */
  drained(): void {
    if (!this.#isBackedUp) return;
    this.#isBackedUp = false;
    this.#unsent.note(0);
    this.count(upstream_flow_control_drained_total);
  }

  /** Whoever receives takes no more for now. */
  pausedReading(): void {
    if (this.#isReadingPaused) return;
    this.#isReadingPaused = true;
    this.count(upstream_flow_control_paused_reading_total);
  }

  resumedReading(): void {
    if (!this.#isReadingPaused) return;
    this.#isReadingPaused = false;
    this.count(upstream_flow_control_resumed_reading_total);
  }

  /** @param sentBytes its head and the part of its body that goes with it. */
  beginRequest(sentBytes: number): void {
    this.#requests++;
    this.#addActiveRequests(1);
    this.count(upstream_rq_total);
    this.#countHost(rq_total, 1);
    this.count(upstream_cx_tx_bytes_total, sentBytes);
  }

  endRequest(): void {
    this.#addActiveRequests(-1);
    this.#breaker.releaseRequest();
  }

  /** The connection ends under a request. */
  cutRequest(isLocal: boolean): void {
    this.endRequest();
    this.count(upstream_cx_destroy_with_active_rq);
    this.count(isLocal ? upstream_cx_destroy_local_with_active_rq : upstream_cx_destroy_remote_with_active_rq);
  }

  /** @param isLocal this side has ended the connection. */
  closed(isLocal: boolean): void {
    this.held.note(0);
    this.#unsent.note(0);
    this.#context.records.addActiveConnections(this.#record, -1);
    this.#breaker.releaseConnection();
    this.#recordAge(upstream_cx_length_ms, this.#context.clock.monotonicMs());
    if (this.#requests > 0) this.#context.stats.record(this.#clusterStats + upstream_rq_per_cx, this.#requests);
    this.count(upstream_cx_active, -1);
    this.#countHost(cx_active, -1);
    this.count(upstream_cx_destroy);
    this.count(isLocal ? upstream_cx_destroy_local : upstream_cx_destroy_remote);
  }

  #addActiveRequests(change: 1 | -1): void {
    this.count(upstream_rq_active, change);
    this.#countHost(rq_active, change);
    this.#context.records.addActiveRequests(this.#record, change);
  }

  #countHost(stat: number, change: number): void {
    this.#context.stats.values[this.#hostStats + stat]! += change;
  }

  #recordAge(stat: number, nowMs: number): void {
    this.#context.stats.record(this.#clusterStats + stat, nowMs - this.startMs);
  }
}
