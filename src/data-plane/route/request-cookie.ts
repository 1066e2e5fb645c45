// Cookies: one of a request, found where it stands, and one for a client that brought none.

import type { HashCookie } from '../../snapshot/index.ts';
import { HEADER_ID, type RequestHead } from '../../wasm/http1.ts';

/** Value of the first cookie of this name without the quotes around it; empty when there is none. */
export function requestCookie(head: RequestHead, name: string): string {
  return findRequestCookie(head, name) ?? '';
}

/** The same; undefined when there is none. */
export function findRequestCookie(head: RequestHead, name: string): string | undefined {
  for (let index = head.indexOf(HEADER_ID.cookie); index >= 0; index = head.nextIndexOf(index)) {
    const value = findCookie(head.valueAt(index), name);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** In the text of a Cookie field, `a=1; b="2"`. */
function findCookie(text: string, name: string): string | undefined {
  for (let start = 0; start < text.length; ) {
    while (text[start] === ' ') start += 1;
    const semicolon = text.indexOf(';', start);
    const end = semicolon === -1 ? text.length : semicolon;
    if (text.startsWith(name, start) && text[start + name.length] === '=') {
      return unquoted(text.slice(start + name.length + 1, end).trimEnd());
    }
    start = end + 1;
  }
  return undefined;
}

function unquoted(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

/** Value of the Set-Cookie field that gives a client this cookie. */
export function setCookieText({ name, ttlSeconds, path, attributes }: HashCookie, value: string): string {
  const parts = [`${name}="${value}"`];
  if (ttlSeconds !== null && ttlSeconds > 0) parts.push(`Max-Age=${ttlSeconds}`);
  if (path !== '') parts.push(`Path=${path}`);
  for (const attribute of attributes) {
    parts.push(attribute.value === '' ? attribute.name : `${attribute.name}=${attribute.value}`);
  }
  parts.push('HttpOnly');
  return parts.join('; ');
}
