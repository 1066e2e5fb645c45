// The constants that histograms find bins with, in the shared memory because a module owns no data. Written
// once, by main, before any worker attaches. Layout: assembly/layout/shared-memory.ts.

import {
  DECADE_COUNT,
  DECADES_AT,
  PAGE_FACTOR_BITS,
  PAGE_FACTOR_COUNT,
  PAGE_FACTORS_AT,
  POWERS_OF_TEN_AT,
  POWERS_OF_TEN_COUNT,
} from '../../assembly/layout/shared-memory.ts';

/** 10^0 to 10^16, read from decimal text, which rounds correctly; all are exact. */
export const POWERS_OF_TEN: readonly number[] = Array.from({ length: POWERS_OF_TEN_COUNT }, (_, exponent) =>
  Number(`1e${exponent}`),
);

export function writeDecadeTables(buffer: ArrayBufferLike): void {
  const decades = new BigUint64Array(buffer, DECADES_AT, DECADE_COUNT);
  for (let leadingZeros = 0; leadingZeros < DECADE_COUNT; leadingZeros++) {
    decades[leadingZeros] = pageAddend(leadingZeros);
  }
  const factors = new BigUint64Array(buffer, PAGE_FACTORS_AT, PAGE_FACTOR_COUNT);
  for (let page = 0; page < PAGE_FACTOR_COUNT; page++) factors[page] = pageFactor(page);
  new Float64Array(buffer, POWERS_OF_TEN_AT, POWERS_OF_TEN_COUNT).set(POWERS_OF_TEN);
}

/**
 * Numbers with so many leading zeros are on one page, or on two that meet at a power of ten. The sum of the
 * number and this carries into the high word exactly from that power on.
 */
function pageAddend(leadingZeros: number): bigint {
  const smallest = leadingZeros === 32 ? 0 : 2 ** (31 - leadingZeros);
  const page = pageOf(smallest);
  const largest = 2 ** (32 - leadingZeros) - 1;
  if (pageOf(largest) === page) return BigInt(page) << 32n;
  return (BigInt(page + 1) << 32n) - BigInt(POWERS_OF_TEN[page + 2]!);
}

function pageOf(value: number): number {
  return Math.max(0, POWERS_OF_TEN.findLastIndex((power) => power <= value) - 1);
}

/** 2^PAGE_FACTOR_BITS / 10^page, rounded up: no u32 is large enough for the excess to reach the next entry. */
function pageFactor(page: number): bigint {
  const power = BigInt(POWERS_OF_TEN[page]!);
  return ((1n << BigInt(PAGE_FACTOR_BITS)) + power - 1n) / power;
}
