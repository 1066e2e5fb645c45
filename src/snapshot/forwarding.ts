// What a connection manager tells upstreams of where requests come from, beyond x-forwarded-for and the like.

import type { CidrRange } from './cidr-range.ts';

export interface ForwardingSettings {
  /** Whose requests count as internal; null for those of private networks. */
  readonly internalAddresses: InternalAddressSettings | null;
  /** Whom requests come from, as upstreams are told; null where they are not. */
  readonly serviceName: ServiceName | null;
  /** The port that the client has connected to goes into x-forwarded-port. */
  readonly appendsPort: boolean;
  /** IPv4 addresses of clients are written as IPv6 ones, `::ffff:192.0.2.7`, unless the runtime says otherwise. */
  readonly mapsIpv4: boolean;
  /** Of every request, whatever it came by; null for what it came by. */
  readonly scheme: 'http' | 'https' | null;
  /** `:scheme` tells of the connection to the upstream. */
  readonly matchesUpstreamScheme: boolean;
  /** Schemes by the ports that clients meant to connect to, where a listener filter knows; null for none. */
  readonly schemePorts: SchemePorts | null;
  /** Responses say the identifier of their request. */
  readonly answersRequestId: boolean;
  /** How it is found out who has sent a request, one way after the other; absent where the other fields say it. */
  readonly originDetection?: readonly OriginDetection[];
}

export type OriginDetection =
  /** By x-forwarded-for, to which so many proxies before the peer have added theirs. */
  | { readonly kind: 'hops'; readonly trustedHops: number; readonly appendsPeer: boolean }
  /** By x-forwarded-for of proxies that are believed: the last address that is none of theirs. */
  | { readonly kind: 'proxies'; readonly proxies: readonly CidrRange[]; readonly appendsPeer: boolean }
  | {
      readonly kind: 'header';
      /** Lower case. */
      readonly name: string;
      /** The address may make a request an internal one. */
      readonly isBelieved: boolean;
      /** Of the answer to requests without an address; null where they go on. */
      readonly refusalStatus: number | null;
    };

export interface InternalAddressSettings {
  /** Clients that come through a pipe are internal. */
  readonly unixSockets: boolean;
  /** Empty for private networks. */
  readonly ranges: readonly CidrRange[];
}

export interface ServiceName {
  /** Empty when the node has none. */
  readonly cluster: string;
  /** Empty when the node has none. */
  readonly node: string;
}

export interface SchemePorts {
  readonly https: readonly number[];
  readonly http: readonly number[];
}
