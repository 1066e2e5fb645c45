// Plain JSON values, and the protobuf JSON forms that plain JavaScript values do not have.

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: JsonValue;
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What stands at the end of a way into an object; undefined where there is none. */
export function jsonAt(object: JsonObject | undefined, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const key of path) value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
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

/** Whether two values say the same; the order of an object's members says nothing. */
export function sameJson(a: JsonValue, b: JsonValue): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [Object.entries(a), new Map<string, JsonValue>(Object.entries(b))];
  return (
    left.length === right.size &&
    left.every(([key, value]) => {
      const other = right.get(key);
      return other !== undefined && sameJson(value as JsonValue, other);
    })
  );
}
