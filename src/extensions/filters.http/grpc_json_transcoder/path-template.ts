// Paths as google.api.http writes them, compiled by path-template-config.ts: which requests fit, and what their variables hold.

export interface PathVariable {
  /** Names of fields, from the request inwards. */
  readonly field: readonly string[];
  /** Segments from `start` on, before `end`; to the last one where `end` is Infinity. */
  readonly start: number;
  readonly end: number;
}

export interface PathTemplate {
  /** `*`, `**` as the last, or a literal. */
  readonly segments: readonly string[];
  /** Behind a colon; empty for none. */
  readonly verb: string;
  readonly variables: readonly PathVariable[];
}

const REST = '**';
const ONE = '*';

/** The parts of a path between its slashes, and its verb; empty for none. */
export interface SplitPath {
  readonly parts: readonly string[];
  readonly verb: string;
}

/** @param path without its query. @param isVerb whether what stands behind the last colon of its last part is one. */
export function splitPath(path: string, isVerb: (text: string) => boolean): SplitPath {
  const colon = path.lastIndexOf(':');
  const verb = colon > path.lastIndexOf('/') ? path.slice(colon + 1) : '';
  if (verb === '' || !isVerb(verb)) return { parts: path.slice(1).split('/'), verb: '' };
  return { parts: path.slice(1, colon).split('/'), verb };
}

/** @returns its parts, or null where it does not fit. */
export function matchTemplate({ segments, verb }: PathTemplate, path: SplitPath): readonly string[] | null {
  if (verb !== path.verb) return null;
  const { parts } = path;
  const isOpen = segments.at(-1) === REST;
  if (isOpen ? parts.length < segments.length - 1 : parts.length !== segments.length) return null;
  for (let at = 0; at < segments.length; at += 1) {
    const segment = segments[at]!;
    if (segment === REST) break;
    if (parts[at] === undefined || parts[at] === '') return null;
    if (segment !== ONE && segment !== parts[at]) return null;
  }
  return parts;
}

const ESCAPE = /%([0-9A-Fa-f]{2})/g;
const RESERVED = new Set("!#$&'()*+,/:;=?@[]");

/**
 * What a variable holds of a path that has matched. Escapes of a single segment are all undone; of several, those stay that would
 * be read as parts of a path.
 */
export function valueAt(variable: PathVariable, parts: readonly string[], kept: 'reserved' | 'slash' | 'none'): string {
  const own = parts.slice(variable.start, variable.end);
  const isSingle = variable.end - variable.start === 1;
  return unescaped(own.join('/'), isSingle ? 'none' : kept);
}

function unescaped(text: string, kept: 'reserved' | 'slash' | 'none'): string {
  const bytes = text.replace(ESCAPE, (whole, digits: string) => {
    const character = String.fromCharCode(Number.parseInt(digits, 16));
    if (kept === 'reserved' && RESERVED.has(character)) return whole;
    if (kept === 'slash' && character === '/') return whole;
    return character;
  });
  return Buffer.from(bytes, 'latin1').toString();
}

/** Pairs of a query. @param plusIsSpace in values. */
export function queryPairs(query: string, plusIsSpace: boolean): readonly (readonly [name: string, value: string])[] {
  return query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=');
      const [name, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
      return [unescaped(name, 'none'), unescaped(plusIsSpace ? value.replaceAll('+', ' ') : value, 'none')] as const;
    });
}
