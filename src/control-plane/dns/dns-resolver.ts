// What discovery asks of a resolver. Main thread.

import type { DnsLookupFamily } from '../../snapshot/index.ts';

export interface DnsAddress {
  /** An IPv4 or IPv6 literal. */
  readonly ip: string;
  /** 0 when the source knows none, as /etc/hosts does not. */
  readonly ttlSeconds: number;
}

/** A name that does not exist is a success without addresses; a failure says nothing about the name. */
export type DnsAnswer =
  | { readonly kind: 'success'; readonly addresses: readonly DnsAddress[] }
  | { readonly kind: 'failure'; readonly reason: string };

export interface DnsResolver {
  lookup(name: string, family: DnsLookupFamily): Promise<DnsAnswer>;
  /** Gives up all lookups that are under way; they fail. */
  cancel(): void;
}
