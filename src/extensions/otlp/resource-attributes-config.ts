// Attributes of a resource as OTEL_RESOURCE_ATTRIBUTES has them: `name=value,name=value`, with percent signs for what may not
// stand there.

/** @returns undefined for a text that is no such list; nothing of it counts then. */
export function attributesOf(text: string): readonly (readonly [name: string, value: string])[] | undefined {
  const found: (readonly [string, string])[] = [];
  for (const item of text.split(',')) {
    if (item.trim() === '') continue;
    const equals = item.indexOf('=');
    const name = item.slice(0, equals).trim();
    if (equals === -1 || name === '') return undefined;
    try {
      found.push([decodeURIComponent(name), decodeURIComponent(item.slice(equals + 1).trim())]);
    } catch {
      return undefined;
    }
  }
  return found;
}
