// The address by which this machine names itself to others, where a loopback address would say nothing.

import { networkInterfaces } from 'node:os';
import type { IpFamily } from './address-families.ts';

type Interfaces = ReturnType<typeof networkInterfaces>;

const LOOPBACK: Readonly<Record<IpFamily, string>> = { v4: '127.0.0.1', v6: '::1' };
const SYSTEM_FAMILY: Readonly<Record<IpFamily, string>> = { v4: 'IPv4', v6: 'IPv6' };

/** The first address that an interface has of the family, one of its link only before none; that of loopback without any. */
export function localAddress(family: IpFamily, interfaces: () => Interfaces = networkInterfaces): string {
  const own = Object.values(interfaces())
    .flatMap((each) => each ?? [])
    .filter((each) => !each.internal && each.family === SYSTEM_FAMILY[family]);
  const found = own.find(({ scopeid = 0 }) => scopeid === 0) ?? own[0];
  return found?.address ?? LOOPBACK[family];
}
