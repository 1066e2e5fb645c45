// Where a redirect leads: its Location, and the head of the request that goes there. The head is text by then, as it was
// sent before, with all that the route has changed of it.

import type { ResponseHead } from '../../wasm/http1.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';

export interface RedirectTarget {
  readonly isHttps: boolean;
  /** host[:port]. */
  readonly authority: string;
  /** Path and query; never empty. */
  readonly target: string;
}

/** Only what names its host can be followed; who it is for (`user@`) is for nobody to say. */
const ABSOLUTE = /^(https?):\/\/([^/?#@\s]+)((?:[/?][^#\s]*)?)(?:#.*)?$/i;
const HOST = 'host';
const BODY_FIELDS = ['content-length', 'transfer-encoding', 'trailer'];

/** @returns undefined when the location leads nowhere. */
export function redirectTarget(location: string): RedirectTarget | undefined {
  const match = ABSOLUTE.exec(location);
  if (match === null) return undefined;
  const [, scheme, authority, rest] = match as unknown as [string, string, string, string];
  return { isHttps: scheme.length === 5, authority, target: rest.startsWith('/') ? rest : `/${rest}` };
}

export interface RedirectedHeadOptions {
  readonly target: RedirectTarget;
  /** What follows asks with GET, and without a body (303, RFC 9110 section 15.4.4). */
  readonly becomesGet: boolean;
  /** Lower-case names of response headers that take the place of those of the request. */
  readonly headersToCopy: readonly string[];
  readonly response: ResponseHead;
}

/** @param head as it was sent. */
export function redirectedHead(head: string, names: ProxyHeaders, options: RedirectedHeadOptions): string {
  const { target, becomesGet, headersToCopy, response } = options;
  const [requestLine, ...lines] = head.slice(0, -4).split('\r\n') as [string, ...string[]];
  const [method, formerTarget] = requestLine.split(' ') as [string, string];
  const formerHost =
    lines
      .find((line) => nameOf(line) === HOST)
      ?.slice(HOST.length + 1)
      .trim() ?? '';
  const dropped = new Set([
    HOST,
    names.originalUrl,
    names.expectedTimeoutMs,
    names.attemptCount,
    ...headersToCopy,
    ...(becomesGet ? BODY_FIELDS : []),
  ]);
  return `${[
    `${becomesGet ? 'GET' : method} ${target.target} HTTP/1.1`,
    `host: ${target.authority}`,
    ...lines.filter((line) => !dropped.has(nameOf(line))),
    `${names.originalUrl}: http://${formerHost}${formerTarget}`,
    ...headersToCopy.flatMap((name) => fieldsOf(response, name)),
  ].join('\r\n')}\r\n\r\n`;
}

function nameOf(line: string): string {
  return line.slice(0, line.indexOf(':')).toLowerCase();
}

function fieldsOf(response: ResponseHead, name: string): string[] {
  const fields: string[] = [];
  for (let index = response.findByName(name, 0); index >= 0; index = response.findByName(name, index + 1)) {
    fields.push(`${name}: ${response.valueAt(index)}`);
  }
  return fields;
}
