// Whether two configurations say the same.

/** Maps count with their entries in order; memory that workers share is state, and says nothing. */
export function areSameSettings(a: unknown, b: unknown): boolean {
  return settingsText(a) === settingsText(b);
}

/** The same of two configurations that say the same. */
export function settingsText(value: unknown): string | undefined {
  return JSON.stringify(value, (_, part: unknown) => (part instanceof Map ? [...part] : part));
}
