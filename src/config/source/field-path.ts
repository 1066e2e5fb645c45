// Field paths as faults show them: `static_resources.clusters[2].metadata.filter_metadata["proxy.lb"]`.
// Fields by dots, list items by index, map entries by quoted key; an Any adds nothing, its message's fields
// follow directly. Everything in config/ that names a field writes it with the functions below.

/** A field name, a list index, or a map key. */
export type PathSegment = string | number | MapKey;

export class MapKey {
  readonly key: string;

  constructor(key: string) {
    this.key = key;
  }
}

export function fieldPath(parent: string, field: string): string {
  return parent === '' ? field : `${parent}.${field}`;
}

export function itemPath(parent: string, index: number): string {
  return `${parent}[${index}]`;
}

export function entryPath(parent: string, key: string): string {
  return `${parent}[${JSON.stringify(key)}]`;
}

export function formatPath(segments: readonly PathSegment[]): string {
  let path = '';
  for (const segment of segments) {
    if (typeof segment === 'string') path = fieldPath(path, segment);
    else if (typeof segment === 'number') path = itemPath(path, segment);
    else path = entryPath(path, segment.key);
  }
  return path;
}

const SEGMENT = /\.?([^.[\]]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y;

/** The reverse of formatPath; what does not look like a path ends it early. */
export function parsePath(path: string): PathSegment[] {
  const segments: PathSegment[] = [];
  SEGMENT.lastIndex = 0;
  for (;;) {
    const match = SEGMENT.exec(path);
    if (match === null) return segments;
    const [, field, index, key] = match;
    if (field !== undefined) segments.push(field);
    else if (index !== undefined) segments.push(Number(index));
    else segments.push(new MapKey(JSON.parse(key!) as string));
  }
}
