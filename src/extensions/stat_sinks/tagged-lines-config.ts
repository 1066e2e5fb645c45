// What the sinks that send lines with tags are configured by: all of them have the same fields.

import {
  type Conversion,
  type DogStatsdSink,
  type GraphiteStatsdSink,
  type MessageSupport,
  rejected,
  supported,
  toNumber,
} from '../../config/index.ts';
import { convertDatagramTarget, DATAGRAM_ADDRESS } from './datagram-config.ts';
import type { TaggedLinesSettings } from './lines/tagged-lines.ts';
import { DEFAULT_PREFIX } from './statsd/config.ts';

export const TAGGED_LINES_SUPPORT: MessageSupport = {
  otherwise: rejected(),
  fields: { address: DATAGRAM_ADDRESS, prefix: supported(), max_bytes_per_datagram: supported() },
};

/** Of UDP: what is longer cannot be sent at all. */
const LARGEST_DATAGRAM = 65_507;

export function convertTaggedLines(
  message: DogStatsdSink | GraphiteStatsdSink,
  at: string,
  conversion: Conversion,
): TaggedLinesSettings | undefined {
  const { address, prefix, max_bytes_per_datagram: limit } = message;
  // Without any the field rules have a fault.
  const target = address && convertDatagramTarget(address, `${at}.address`, conversion);
  const maxBytes = limit === null ? 0 : toNumber(limit.value);
  if (maxBytes > LARGEST_DATAGRAM) {
    conversion.faults.error(`${at}.max_bytes_per_datagram`, `${maxBytes} exceeds the limit ${LARGEST_DATAGRAM}`);
  }
  return target ? { prefix: prefix || DEFAULT_PREFIX, target, maxBytes } : undefined;
}
