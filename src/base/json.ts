// Plain JSON values, and the protobuf JSON forms that plain JavaScript values do not have.

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** A google.protobuf.Duration: `6s`, `0.500s`. @param ms 0 or more, whole. */
export function jsonDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const rest = ms % 1000;
  return rest === 0 ? `${seconds}s` : `${seconds}.${String(rest).padStart(3, '0')}s`;
}

/** A protobuf int64 or uint64: a string, because JSON's numbers are doubles to most readers. */
export function jsonInt64(value: number | bigint): string {
  return String(value);
}
