// Where a redirect leads: its Location, and the head of the request that goes there. The head is text by then, as it was
// sent before, with all that the route has changed of it.

import type { ResponseHead } from '../../wasm/http1.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { TextHead } from '../http/text-head.ts';

export interface RedirectTarget {
  readonly isHttps: boolean;
  /** host[:port]. */
  readonly authority: string;
  /** Path and query; never empty. */
  readonly target: string;
}

/** Only what names its host can be followed; who it is for (`user@`) is for nobody to say. */
const ABSOLUTE = /^(https?):\/\/([^/?#@\s]+)((?:[/?][^#\s]*)?)(?:#.*)?$/i;
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

/** @param formerHead as it was sent. */
export function redirectedHead(formerHead: string, names: ProxyHeaders, options: RedirectedHeadOptions): string {
  const { target, becomesGet, headersToCopy, response } = options;
  const head = TextHead.of(formerHead);
  const [method, formerTarget] = head.startLine.split(' ') as [string, string];
  const formerUrl = `http://${head.headerByName('host') ?? ''}${formerTarget}`;
  head.startLine = `${becomesGet ? 'GET' : method} ${target.target} HTTP/1.1`;
  head.replaceHost(target.authority);
  // What the router says of itself, it says anew.
  for (const name of [names.originalUrl, names.expectedTimeoutMs, names.attemptCount]) head.removeField(name);
  if (becomesGet) for (const name of BODY_FIELDS) head.removeField(name);
  for (const name of headersToCopy) {
    head.removeField(name);
    copyFields(response, name, head);
  }
  head.append(names.originalUrl, formerUrl);
  return head.text();
}

function copyFields(response: ResponseHead, name: string, head: TextHead): void {
  for (let index = response.findByName(name, 0); index >= 0; index = response.findByName(name, index + 1)) {
    head.append(name, response.valueAt(index));
  }
}
