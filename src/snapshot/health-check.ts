// How the members of a cluster are checked. Only the main thread reads it: workers see what came of it.

import type { Address } from '../base/address.ts';
import type { StringMatch } from '../base/string-match.ts';
import type { Metadata } from './metadata.ts';

/** What a connection to a server begins with, where that asks who comes. */
export interface ServerCredentials {
  /** Empty for the server's default user. */
  readonly username: string;
  readonly password: string;
}

/** Waits of one host's checks, from the end of one to the start of the next. */
export interface CheckIntervals {
  /** The first check waits for a random time below this. */
  readonly initialJitterMs: number;
  /** After a passed check. */
  readonly healthyMs: number;
  /** After a passed check that was not enough to make the host healthy. */
  readonly healthyEdgeMs: number;
  /** After a failed check. */
  readonly unhealthyMs: number;
  /** After a failed check that was not enough to make the host unhealthy. */
  readonly unhealthyEdgeMs: number;
  /** Instead of the others while the cluster has had no traffic. */
  readonly noTrafficMs: number;
  /** The same after a passed check that changed nothing. */
  readonly noTrafficHealthyMs: number;
  /** A random time below this is added to every wait. */
  readonly jitterMs: number;
  /** A random part of the wait, below so many percent of it, is added as well. */
  readonly jitterPercent: number;
}

export interface TcpProbeSettings {
  readonly kind: 'tcp';
  /** Sent with every check that expects something. */
  readonly send: Buffer;
  /** What has to come, in this order; without any, a connection is enough. */
  readonly receive: readonly Buffer[];
}

/** From `start` to below `end`. */
export interface StatusRange {
  readonly start: number;
  readonly end: number;
}

/** What the head of a check says beside what it says by itself. */
export interface CheckHeaders {
  /** Names in lower case; they replace what a check has by itself, and one another unless they append. */
  readonly headersToAdd: readonly { readonly name: string; readonly value: string; readonly appends: boolean }[];
  readonly headersToRemove: readonly string[];
}

export interface HttpProbeSettings extends CheckHeaders {
  readonly kind: 'http';
  /** Over HTTP/2; absent for HTTP/1.1. */
  readonly speaksHttp2?: true;
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS' | 'TRACE' | 'PATCH';
  readonly path: string;
  /** Of hosts that bring none of their own. */
  readonly authority: string;
  readonly body: Buffer;
  readonly expectedStatuses: readonly StatusRange[];
  /** Failures that count toward the threshold instead of at once. */
  readonly retriableStatuses: readonly StatusRange[];
  /** What has to come in the body, in this order, within its first `responseBufferBytes`. */
  readonly receive: readonly Buffer[];
  readonly responseBufferBytes: number;
  /** Which service has to answer; undefined for any. */
  readonly serviceName: StringMatch | undefined;
}

/** A call of grpc.health.v1.Health/Check. */
export interface GrpcProbeSettings extends CheckHeaders {
  readonly kind: 'grpc';
  /** Which service is asked after; empty for the server as a whole. */
  readonly serviceName: string;
  /** Of hosts that bring none of their own. */
  readonly authority: string;
}

/** A server of Redis answers a PING, or does not have a key that stands for maintenance. */
export interface RedisProbeSettings {
  readonly kind: 'redis';
  /** Empty for a PING. */
  readonly key: string;
  /** Absent where servers ask for none. */
  readonly credentials?: ServerCredentials;
}

export type ProbeSettings = TcpProbeSettings | HttpProbeSettings | GrpcProbeSettings | RedisProbeSettings;

export interface HealthCheckSettings {
  readonly probe: ProbeSettings;
  readonly timeoutMs: number;
  readonly intervals: CheckIntervals;
  /** Failed checks in a row that make a host unhealthy. */
  readonly unhealthyThreshold: number;
  /** Passed checks in a row that make it healthy again; the first of all is enough by itself. */
  readonly healthyThreshold: number;
  readonly reusesConnection: boolean;
  /** Offered in TLS in place of what the cluster offers; absent for that. */
  readonly alpnProtocols?: readonly string[];
  /** Chooses the transport socket in place of the metadata of hosts; absent for that. */
  readonly transportMetadata?: Metadata;
  /** Port to check instead of a host's own, 0 for that; one of the endpoint's goes first. */
  readonly port: number;
  /** Files that get a line with each event. */
  readonly eventLogPaths: readonly string[];
  readonly alwaysLogsFailures: boolean;
  readonly alwaysLogsSuccess: boolean;
  /** New hosts count for nothing before their first check. */
  readonly excludesNewHosts: boolean;
  /** A host that discovery no longer finds goes at once, even while it passes its checks. */
  readonly removesPassingHosts: boolean;
}

/** What one endpoint wants to be otherwise. */
export interface EndpointCheckSettings {
  /** Where to connect; undefined for the host's own address. */
  readonly address: Address | undefined;
  /** Port to check, 0 for no other. */
  readonly port: number;
  /** Host header, empty for that of the cluster. */
  readonly hostname: string;
  readonly isDisabled: boolean;
}
