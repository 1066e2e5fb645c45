// A host as its pools and their connections see it: where it is, what limits them, and where they count.

import type { Address, IpAddress } from '../../../base/address.ts';
import type { ClusterSnapshot } from '../../../snapshot/index.ts';
import type { HeadLimits } from '../../../wasm/http1.ts';
import type { ClusterPriority } from '../../../wasm/shared-records.ts';
import type { RequestForm } from '../../http/codec/http1/request-form.ts';
import type { CircuitBreaker } from '../circuit-breaker.ts';

/** What all HTTP pools of a cluster in this worker hold together; each pool adds what changes with it. */
export interface PoolTotals {
  /** Requests that run or wait. */
  requests: number;
  /** Requests that their connections carry, or could, also those that are not there yet. */
  capacity: number;
}

export interface PoolCluster {
  readonly settings: ClusterSnapshot['settings'];
  /** First cell of CLUSTER_STATS in this worker's slab. */
  readonly statBase: number;
  readonly responseHeadLimits: HeadLimits;
  /** Of heads in HTTP/1; null: they go as they came. */
  readonly requestForm: RequestForm | null;
  /** Null when nobody wants to know what its pools hold. */
  readonly forecast: { readonly totals: PoolTotals } | null;
  /** First cell of HTTP2_STATS in this worker's slab, where hosts are spoken to in HTTP/2. */
  readonly http2StatBase: number;
  /** Lets stats of HTTP/1 be seen, which a cluster without such connections has not. */
  showHttp1Stats(): void;
  /** Closes a pool of the priority that carries nothing. @returns whether there was one. */
  closeUnusedPool(priority: ClusterPriority): boolean;
}

export interface PoolHost {
  readonly cluster: PoolCluster;
  /** Where new connections go. */
  readonly address: Address;
  /** Of a host with several addresses: where new connections are tried, in this order. Null with one. */
  readonly connectOrder: readonly IpAddress[] | null;
  /** The address as text, for logs. */
  readonly label: string;
  /** Byte address of the record in shared memory. */
  readonly record: number;
  /** First cell of HOST_STATS in this worker's slab. */
  readonly statBase: number;
  /** What it has chosen last, where it chooses by ALPN; true before it has chosen anything. */
  choosesHttp2: boolean;
  /** Streams that it takes at a time on a connection of HTTP/2, as it has said last; infinite before it has said anything. */
  http2Streams: number;
  /** Neither unhealthy nor degraded. */
  readonly isHealthy: boolean;
  /** Takes places for a connection: one of the host, and one of the cluster. @returns false when either has no more. */
  tryAcquireConnection(breaker: CircuitBreaker): boolean;
  /** The same beyond any limit. */
  acquireConnection(breaker: CircuitBreaker): void;
  /** It has as many connections as one host may have. */
  isFull(breaker: CircuitBreaker): boolean;
  /** A connection or a waiting request has gone. */
  onUserGone(): void;
}
