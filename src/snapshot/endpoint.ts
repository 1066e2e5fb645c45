// A member of a cluster, as the configuration or a lookup has it.

import type { Address, IpAddress } from '../base/address.ts';
import type { SubsetValue } from './balancing.ts';
import type { EndpointCheckSettings } from './health-check.ts';
import type { Metadata } from './metadata.ts';

export interface Locality {
  readonly region: string;
  readonly zone: string;
  readonly subZone: string;
}

/** What the configuration says of a member's health; `draining` and `timeout` count as unhealthy, `unknown` as healthy. */
export type ConfiguredHealth = 'unknown' | 'healthy' | 'degraded' | 'unhealthy' | 'timeout' | 'draining';

/** A host that a client has named. */
export interface NamedAddress {
  /** A host name in lower-case ASCII, or an IP literal. */
  readonly name: string;
  readonly port: number;
}

/** What all hosts of one endpoint have in common, however many addresses it turns out to have. */
export interface EndpointSettings {
  /** The configured DNS name, or empty. */
  readonly hostname: string;
  /** Load-balancing weight within its locality, 1 or more. */
  readonly weight: number;
  readonly locality: Locality;
  /** Weight of the locality within its priority, where localities are weighed; 0 for no traffic. */
  readonly localityWeight: number;
  /** 0 is the most preferred. */
  readonly priority: number;
  readonly canary: boolean;
  readonly health: ConfiguredHealth;
  /** Places the host among those that hashes choose from; empty for its name or address. */
  readonly hashKey: string;
  /** Of the keys that the cluster's subsets go by. */
  readonly subsetValues: readonly SubsetValue[];
  /** For formats; absent without any. */
  readonly metadata?: Metadata;
  /** Absent when the endpoint wants nothing of its own. */
  readonly check?: EndpointCheckSettings;
}

/** A member of a cluster, before it has a place in shared memory. */
export interface HostSettings extends EndpointSettings {
  readonly address: Address;
  /** Name of a member whose address changes while it stays the same member; absent where the address names it. */
  readonly logicalName?: string;
  /** What clients call the member, where that is no address; `logicalName` is the same as text. */
  readonly named?: NamedAddress;
  /** Of a member with several addresses: where connections are tried, in this order. Two or more; `address` is among them. */
  readonly connectOrder?: readonly IpAddress[];
}
