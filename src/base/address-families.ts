// In which order the addresses of one host are tried (RFC 8305, section 4): some of one family, one of the other, and so
// on, each family in the order in which it came.

import type { IpAddress } from './address.ts';

export type IpFamily = 'v4' | 'v6';

export interface FamilyOrder {
  /** Undefined: the family of the first address. */
  readonly first: IpFamily | undefined;
  /** Addresses of the first family for each one of the other; 1 or more. */
  readonly firstCount: number;
}

export const ALTERNATING: FamilyOrder = { first: undefined, firstCount: 1 };

export function familyOf(ip: string): IpFamily {
  return ip.includes(':') ? 'v6' : 'v4';
}

/** @param addresses as their host prefers them, one or more. */
export function inFamilyOrder(addresses: readonly IpAddress[], { first, firstCount }: FamilyOrder): IpAddress[] {
  const firstFamily = first ?? familyOf(addresses[0]!.ip);
  const preferred = addresses.filter(({ ip }) => familyOf(ip) === firstFamily);
  const others = addresses.filter(({ ip }) => familyOf(ip) !== firstFamily);
  const ordered: IpAddress[] = [];
  let taken = 0;
  for (let round = 0; ordered.length < addresses.length; round++) {
    ordered.push(...preferred.slice(taken, taken + firstCount), ...others.slice(round, round + 1));
    taken += firstCount;
  }
  return ordered;
}
