// What requests to some clusters look like on the wire, where that differs from how they came. Made once per cluster, of those
// that want any of it; the head is text by then, and nothing but its form changes.

import type { RequestForm as RequestFormSettings } from '../../../../snapshot/index.ts';
import { Method } from '../../../../wasm/http1.ts';
import { ProperCase } from '../../proper-case.ts';

const HOST_LINE = /\r\nhost: *([^\r\n]*?) *\r\n/i;
const FROM_HTTPS = /\r\nx-forwarded-proto: *https *\r\n/i;

export class RequestForm {
  readonly #hasFullUrl: boolean;
  readonly #properCase: ProperCase | null;

  constructor({ hasFullUrl, hasProperCase }: RequestFormSettings) {
    this.#hasFullUrl = hasFullUrl;
    this.#properCase = hasProperCase ? new ProperCase() : null;
  }

  /** @param head latin1, from the request line to the empty line. @param scheme of the URL, where it is not the request's own. */
  apply(head: string, methodId: number, scheme?: 'http' | 'https'): string {
    const named = this.#hasFullUrl && methodId !== Method.CONNECT ? withFullUrl(head, scheme) : head;
    return this.#properCase === null ? named : this.#properCase.apply(named);
  }
}

/** `GET /a HTTP/1.1` with `host: x` becomes `GET http://x/a HTTP/1.1` (RFC 9112 section 3.2.2). */
function withFullUrl(head: string, asked: 'http' | 'https' | undefined): string {
  const host = HOST_LINE.exec(head)?.[1] ?? '';
  const targetAt = head.indexOf(' ') + 1;
  const first = head[targetAt];
  if (host === '' || (first !== '/' && first !== '*')) return head;
  const scheme = asked ?? (FROM_HTTPS.test(head) ? 'https' : 'http');
  // That of all resources, `*`, is the URL without a path.
  const restAt = first === '*' ? targetAt + 1 : targetAt;
  return `${head.slice(0, targetAt)}${scheme}://${host}${head.slice(restAt)}`;
}
