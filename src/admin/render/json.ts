// JSON as admin bodies have it: one space of indent per level, keys in the order given (ascending proto field
// numbers, by the caller), one newline at the end.

import type { JsonObject } from '../../base/json.ts';

/** A whole response body. */
export function jsonBody(value: JsonObject): string {
  return `${JSON.stringify(value, undefined, 1)}\n`;
}
