// 64-bit integers of messages: protobufjs hands them out as two 32-bit halves, JSON input may leave a
// plain number. Configuration never needs more than 2^53, so readers ask for a number.

/** The part of protobufjs' 64-bit integer that we use. */
export interface Long {
  readonly low: number;
  readonly high: number;
  readonly unsigned: boolean;
  toNumber(): number;
  toString(): string;
}

export type Int64 = Long | number;

/** Nearest double; exact up to 2^53. */
export function int64ToNumber(value: Int64): number {
  return typeof value === 'number' ? value : value.toNumber();
}

/** Exact, for comparisons and messages. */
export function int64ToBigInt(value: Int64): bigint {
  return typeof value === 'number' ? BigInt(value) : BigInt(value.toString());
}
