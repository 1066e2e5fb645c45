// Makes the key of a request by which its scope is found (ScopedRoutes.ScopeKeyBuilder): each part is an element of a header.

import type { ScopeKeyPart } from '../../snapshot/index.ts';
import { firstValueReader, type ReadHeader } from './header-matcher.ts';
import type { RouteRequest } from './route-request.ts';

interface PreparedPart extends ScopeKeyPart {
  readonly read: ReadHeader;
}

/** What no header holds. */
const BETWEEN = '\0';

/** One text for a key, which differs from that of any other key with as many parts. */
export function scopeKeyText(key: readonly string[]): string {
  return key.join(BETWEEN);
}

export class ScopeKeyBuilder {
  readonly #parts: readonly PreparedPart[];

  constructor(parts: readonly ScopeKeyPart[]) {
    this.#parts = parts.map((part) => ({ ...part, read: firstValueReader(part.header) }));
  }

  /** How many parts a key has; no request belongs to a scope with another number. */
  get length(): number {
    return this.#parts.length;
  }

  /** @returns as `scopeKeyText`; undefined for a request that lacks a part: it belongs to no scope. */
  keyOf(request: RouteRequest): string | undefined {
    const parts = this.#parts;
    let key = '';
    for (let at = 0; at < parts.length; at += 1) {
      const part = parts[at]!;
      const value = part.read(request);
      const element = value === undefined ? undefined : elementOf(value, part);
      if (element === undefined) return undefined;
      key = at === 0 ? element : key + BETWEEN + element;
    }
    return key;
  }
}

function elementOf(value: string, { elementSeparator, take }: ScopeKeyPart): string | undefined {
  const elements = elementSeparator === '' ? [value] : value.split(elementSeparator);
  if (take.kind === 'index') return elements[take.index];
  for (const element of elements) {
    const at = element.indexOf(take.separator);
    if (at === -1 ? element === take.key : element.slice(0, at) === take.key) {
      return at === -1 ? '' : element.slice(at + take.separator.length);
    }
  }
  return undefined;
}
