// What requests to some clusters look like on the wire, where that differs from how they came. Made once per cluster, of those
// that want any of it; the head is text by then, and nothing but its form changes.

import type { RequestForm as RequestFormSettings } from '../../../../snapshot/index.ts';
import { Method } from '../../../../wasm/http1.ts';

const HOST_LINE = /\r\nhost: *([^\r\n]*?) *\r\n/i;
const FROM_HTTPS = /\r\nx-forwarded-proto: *https *\r\n/i;
const NAMES = /\r\n([^:\r\n]+):/g;
const WORD_STARTS = /(?<![a-z0-9])[a-z]/g;
/** Names that are kept in their form: clients can make up any number of others. */
const MOST_KEPT_NAMES = 256;

export class RequestForm {
  readonly #settings: RequestFormSettings;
  /** As they came to as they go. */
  readonly #names = new Map<string, string>();

  constructor(settings: RequestFormSettings) {
    this.#settings = settings;
  }

  /** @param head latin1, from the request line to the empty line. */
  apply(head: string, methodId: number): string {
    const named = this.#settings.hasFullUrl && methodId !== Method.CONNECT ? withFullUrl(head) : head;
    if (!this.#settings.hasProperCase) return named;
    return named.replace(NAMES, (_line, name: string) => `\r\n${this.#properCase(name)}:`);
  }

  #properCase(name: string): string {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const formed = name.toLowerCase().replace(WORD_STARTS, (letter) => letter.toUpperCase());
    if (this.#names.size < MOST_KEPT_NAMES) this.#names.set(name, formed);
    return formed;
  }
}

/** `GET /a HTTP/1.1` with `host: x` becomes `GET http://x/a HTTP/1.1` (RFC 9112 section 3.2.2). */
function withFullUrl(head: string): string {
  const host = HOST_LINE.exec(head)?.[1] ?? '';
  const targetAt = head.indexOf(' ') + 1;
  const first = head[targetAt];
  if (host === '' || (first !== '/' && first !== '*')) return head;
  const scheme = FROM_HTTPS.test(head) ? 'https' : 'http';
  // That of all resources, `*`, is the URL without a path.
  const restAt = first === '*' ? targetAt + 1 : targetAt;
  return `${head.slice(0, targetAt)}${scheme}://${host}${head.slice(restAt)}`;
}
