// Whether two configurations say the same.

/** Maps count with their entries in order; memory that workers share is state, and says nothing. */
export function areSameSettings(a: unknown, b: unknown): boolean {
  return asText(a) === asText(b);
}

function asText(value: unknown): string | undefined {
  return JSON.stringify(value, (_, part: unknown) => (part instanceof Map ? [...part] : part));
}
