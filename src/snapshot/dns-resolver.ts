// The servers of DNS that names are looked up at.

/** Whom lookups ask, and how. */
export interface DnsResolverSettings {
  /** Empty for those of the system. */
  readonly servers: readonly { readonly ip: string; readonly port: number }[];
  /** Ask `servers` only when the system names none. */
  readonly serversAreFallback: boolean;
  /** TCP alone; otherwise UDP, and TCP for what is too long for it. */
  readonly useTcp: boolean;
  /** Try the search domains of the system for names that are not absolute. */
  readonly useSearchDomains: boolean;
  /** Begin with another server each time. */
  readonly rotate: boolean;
  /** For one question to one server. */
  readonly queryTimeoutMs: number;
  /** Questions to a silent server before the lookup fails, 1 or more. */
  readonly queryTries: number;
  /** What an answer over UDP may have, as servers are told; absent: nothing is said, which means 512. */
  readonly udpPayloadBytes?: number;
  /** Addresses of a family that no interface but loopback has are left out. */
  readonly leavesOutUnroutable?: true;
}
