// What the builders of tables refuse, in one form: argument, value, limit.

import { errorMessage, WeirError } from '../../base/errors.ts';
import type { SharedHeap } from '../heap.ts';

const LARGEST_WEIGHT = 0xffff_ffff;

export interface WeightedHost {
  /** Whole number of 1 (default) to 2^32 - 1. */
  readonly weight?: number | undefined;
}

export function argumentError(name: string, problem: string): WeirError {
  return new WeirError('WEIR_LB_ARGUMENT', `${name}: ${problem}`);
}

/** @throws WeirError WEIR_LB_ARGUMENT unless `value` is a whole number of `least` to `most`. */
export function checkWhole(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw argumentError(name, `${value} is not a whole number from ${least} to ${most}`);
}

/**
 * The weight of each host, 1 where none is given.
 * @throws WeirError WEIR_LB_ARGUMENT for an empty list or a weight that is no whole number of 1 to 2^32 - 1.
 */
export function weightsOf(hosts: readonly WeightedHost[]): Float64Array {
  checkHosts(hosts);
  const weights = new Float64Array(hosts.length);
  for (let at = 0; at < weights.length; at += 1) {
    const { weight = 1 } = hosts[at]!;
    // The name is put together for those that fail only: ten thousand of them would cost more than the table.
    if (!isWeight(weight)) checkWhole(`hosts[${at}].weight`, weight, 1, LARGEST_WEIGHT);
    weights[at] = weight;
  }
  return weights;
}

/** @throws WeirError WEIR_LB_ARGUMENT when the weights add up to more than 2^32 - 1. */
export function checkWeightSum(sum: number): void {
  if (sum <= LARGEST_WEIGHT) return;
  throw argumentError('hosts', `the sum of weights ${sum} exceeds the limit ${LARGEST_WEIGHT}`);
}

function isWeight(weight: number): boolean {
  return Number.isInteger(weight) && weight >= 1 && weight <= LARGEST_WEIGHT;
}

/** @throws WeirError WEIR_LB_ARGUMENT for an empty list. */
export function checkHosts(hosts: readonly unknown[]): void {
  if (hosts.length === 0) throw argumentError('hosts', '0 hosts are below the limit 1');
}

/**
 * A block for `what`, such as `tableSize: 65537`.
 * @throws WeirError WEIR_SHARED_MEMORY_FULL, naming what asked for how much.
 */
export function allocateFor(heap: SharedHeap, size: number, what: string): number {
  try {
    return heap.allocate(size);
  } catch (cause) {
    if (!(cause instanceof WeirError && cause.code === 'WEIR_SHARED_MEMORY_FULL')) throw cause;
    throw new WeirError(cause.code, `${what} needs ${size} bytes: ${errorMessage(cause)}`, { cause });
  }
}
