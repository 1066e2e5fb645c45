// Clusters and their hosts, as the admin interface reads them.

import type { Address } from '../../base/address.ts';
import type { LocalityView } from './locality.ts';

/** Limits of one routing priority. */
export interface CircuitBreakerView {
  readonly maxConnections: number;
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  readonly maxRetries: number;
}

/** Success rates are 0 to 100, or -1 when the last interval had too little data. */
export interface OutlierView {
  readonly successRateAverage: number;
  readonly successRateEjectionThreshold: number;
  readonly localOriginSuccessRateAverage: number;
  readonly localOriginSuccessRateEjectionThreshold: number;
}

/** Sums over all workers, in the order in which /clusters lists them. */
export interface HostStatsView {
  readonly cx_active: number;
  readonly cx_connect_fail: number;
  readonly cx_total: number;
  readonly rq_active: number;
  readonly rq_error: number;
  readonly rq_success: number;
  readonly rq_timeout: number;
  readonly rq_total: number;
}

/** One health check of a host, or an answer of it to a client that spoke of its health. */
export interface CheckView {
  readonly kind: 'http' | 'tcp' | 'grpc' | 'redis' | 'request';
  /** Milliseconds since the Unix epoch. */
  readonly endedMs: number;
  readonly hasPassed: boolean;
  /** `HTTP 503`, `ECONNREFUSED`. */
  readonly detail: string;
}

/** How a host was taken out of service because it failed more than it should. */
export interface EjectionView {
  /** The detector, such as `consecutive-5xx`. */
  readonly kind: string;
  /** In percent, where hosts were compared; undefined after failures in a row. */
  readonly successRate: number | undefined;
  /** Since the host came, this one included. */
  readonly count: number;
  /** Milliseconds since the Unix epoch. */
  readonly beganMs: number;
  /** Undefined while it lasts. */
  readonly endedMs: number | undefined;
}

export interface HostView {
  readonly address: Address;
  /** The configured DNS name, or empty. */
  readonly hostname: string;
  /** Bits of HEALTH_FLAGS (render/health-flags.ts); 0 is healthy. */
  readonly healthFlags: number;
  readonly weight: number;
  readonly locality: LocalityView;
  readonly canary: boolean;
  readonly priority: number;
  /** 0 to 100, or -1 when not computed. */
  readonly successRate: number;
  readonly localOriginSuccessRate: number;
  readonly stats: HostStatsView;
  /** Undefined for a host that has not been checked. */
  readonly lastCheck: CheckView | undefined;
  /** The one that brought the host into its state. */
  readonly decidingCheck: CheckView | undefined;
  /** Undefined for a host that was never ejected. */
  readonly lastEjection: EjectionView | undefined;
}

export interface ClusterView {
  readonly name: string;
  /** alt_stat_name, or the name. */
  readonly observabilityName: string;
  /** Undefined when no outlier detector is installed. */
  readonly outlier: OutlierView | undefined;
  readonly circuitBreakers: { readonly default: CircuitBreakerView; readonly high: CircuitBreakerView };
  readonly addedViaApi: boolean;
  /** Empty when discovery does not use another name than the cluster's. */
  readonly edsServiceName: string;
  /** Each of its hosts has stats among all others. */
  readonly tracksHosts: boolean;
  /** Members by priority, then in the order of the host set; read once, host by host. */
  hosts(): Iterable<HostView>;
}

export interface ClustersView {
  /** Version of the last accepted CDS update; `static` without CDS. */
  versionInfo(): string;
  cluster(name: string): ClusterView | undefined;
  /** Active clusters, in any order. */
  clusters(): Iterable<ClusterView>;
}
