// What must hold of the sizes of hash tables, wherever they are configured. Ranges are rules of the schema.

import { isPrime } from '../../base/prime.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { FaultSink } from './fault-sink.ts';
import { DEFAULT_MAXIMUM_RING_SIZE, DEFAULT_MINIMUM_RING_SIZE } from './load-balancing.ts';
import type { MaglevMessage, RingHashMessage } from './messages.ts';

const MAX_MAGLEV_SIZE = 5_000_011;

type RingSizes = Pick<RingHashMessage, 'minimum_ring_size' | 'maximum_ring_size'>;

export function checkRingSizes(ring: RingSizes | null, at: string, faults: FaultSink): void {
  if (ring === null) return;
  const minimum = int64ToNumber(ring.minimum_ring_size?.value ?? DEFAULT_MINIMUM_RING_SIZE);
  const maximum = int64ToNumber(ring.maximum_ring_size?.value ?? DEFAULT_MAXIMUM_RING_SIZE);
  // A size above the limit has broken a field rule already.
  if (minimum <= maximum || minimum > DEFAULT_MAXIMUM_RING_SIZE) return;
  if (ring.minimum_ring_size === null) {
    faults.error(`${at}.maximum_ring_size`, `${maximum} is below minimum_ring_size ${minimum}`);
  } else faults.error(`${at}.minimum_ring_size`, `${minimum} exceeds maximum_ring_size ${maximum}`);
}

export function checkMaglevSize(maglev: Pick<MaglevMessage, 'table_size'> | null, at: string, faults: FaultSink): void {
  const size = maglev?.table_size;
  if (!size) return;
  const slots = int64ToNumber(size.value);
  // A size above the limit has broken a field rule already, and would take long to test.
  if (slots > MAX_MAGLEV_SIZE || isPrime(slots)) return;
  faults.error(`${at}.table_size`, `${slots} is not a prime number`);
}
