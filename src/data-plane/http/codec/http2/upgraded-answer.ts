// The answer to an upgrade that went out as extended CONNECT (RFC 8441), as the 101 that the request has asked for.

import { createHash } from 'node:crypto';
import type { Http1Codec } from '../../../../wasm/http1.ts';
import { Method } from '../../../../wasm/http1.ts';
import { NO_LIMITS } from '../../filtered-stream.ts';

const PROTOCOL = /\r\nupgrade:[ \t]*([^\r]*?)[ \t]*\r\n/i;
const KEY = /\r\nsec-websocket-key:[ \t]*([^\r]*?)[ \t]*\r\n/i;
const ACCEPT = 'sec-websocket-accept';
/** RFC 6455 section 1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export class UpgradedAnswer {
  readonly #protocol: string;
  readonly #key: string | undefined;

  /** @param head of the request, in its kept form. */
  constructor(head: string) {
    this.#protocol = PROTOCOL.exec(head)![1]!;
    this.#key = KEY.exec(head)?.[1];
  }

  /** A 2xx in the codec's table becomes a 101; any other answer is what it is. */
  apply(codec: Http1Codec): void {
    const { response } = codec;
    if (response.status < 200 || response.status > 299) return;
    // What was added here would have been for an upgrade over HTTP/1, whose key says nothing in HTTP/2.
    const hasAccept = response.headerByName(ACCEPT) !== undefined;
    const text = codec.responseText(codec.writeResponse());
    const fields = text.slice(text.indexOf('\r\n') + 2);
    const accept = this.#key === undefined || hasAccept ? '' : `${ACCEPT}: ${acceptOf(this.#key)}\r\n`;
    const start = `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${this.#protocol}\r\n${accept}`;
    const bytes = Buffer.from(start + fields, 'latin1');
    codec.parseResponse(bytes, 0, bytes.length, NO_LIMITS, Method.GET);
  }
}

function acceptOf(key: string): string {
  return createHash('sha1')
    .update(key + GUID)
    .digest('base64');
}
