// CidrRange messages as ranges.

import { parsePrefix } from '../../base/ip-number.ts';
import type { CidrRange } from '../../snapshot/index.ts';
import { quote } from '../source/node.ts';
import type { FaultSink } from './fault-sink.ts';
import type { CidrRangeMessage } from './messages.ts';
import { valueOr } from './units.ts';

/** Ranges that are none are left out; faults say why. */
export function convertCidrRanges(
  messages: readonly CidrRangeMessage[],
  at: string,
  faults: FaultSink,
): readonly CidrRange[] {
  return messages.flatMap((message, index) => convertCidrRange(message, `${at}[${index}]`, faults) ?? []);
}

/** @returns undefined for what is none; a fault says why. */
export function convertCidrRange(message: CidrRangeMessage, at: string, faults: FaultSink): CidrRange | undefined {
  const ip = message.address_prefix;
  const prefixLength = valueOr(message.prefix_len, 0);
  // An empty one has already broken a field rule.
  if (ip === '') return undefined;
  if (parsePrefix(ip, 0) === undefined) {
    faults.error(`${at}.address_prefix`, `${quote(ip)} is not an IP address`);
    return undefined;
  }
  if (parsePrefix(ip, prefixLength) === undefined) {
    faults.error(`${at}.prefix_len`, `${prefixLength} exceeds the length of the address ${ip}`);
    return undefined;
  }
  return { ip, prefixLength };
}
