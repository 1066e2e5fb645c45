// Enum values by number, for messages and for settings that are named after them.

/** Name of `value`; numbers that the schema does not know stay numbers (a field rule refuses them). */
export function enumName(values: Readonly<Record<string, number>>, value: number): string {
  for (const name in values) if (values[name] === value) return name;
  return String(value);
}
