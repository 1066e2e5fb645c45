// The head of the request that goes where a redirect leads. It is text by then, as it was sent before, with all that the route has
// changed of it.

import type { AbsoluteTarget } from '../../base/absolute-target.ts';
import type { ResponseHead } from '../../wasm/http1.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { TextHead } from '../http/text-head.ts';

const BODY_FIELDS = ['content-length', 'transfer-encoding', 'trailer'];

export interface RedirectedHeadOptions {
  readonly target: AbsoluteTarget;
  /** What follows asks with GET, and without a body (303, RFC 9110 section 15.4.4). */
  readonly becomesGet: boolean;
  /** Lower-case names of response headers that take the place of those of the request. */
  readonly headersToCopy: readonly string[];
  /** Null where none are. */
  readonly response: ResponseHead | null;
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
    if (response !== null) copyFields(response, name, head);
  }
  head.append(names.originalUrl, formerUrl);
  return head.text();
}

function copyFields(response: ResponseHead, name: string, head: TextHead): void {
  for (let index = response.findByName(name, 0); index >= 0; index = response.findByName(name, index + 1)) {
    head.append(name, response.valueAt(index));
  }
}
