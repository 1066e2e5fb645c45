// How a head announces a body whose framing has changed.

import { Framing, type MessageHead } from '../../wasm/http1.ts';

/**
 * Makes a head announce a body of this length, or of chunks for null.
 * @returns true when the body has to come in chunks.
 */
export function announceBody(head: MessageHead, length: number | null): boolean {
  if (length !== null) {
    if (head.framing === Framing.LENGTH && head.contentLength === length) return false;
    head.removeField('transfer-encoding');
    head.removeField('content-length');
    head.append('content-length', String(length));
    return false;
  }
  head.removeField('content-length');
  if (head.framing !== Framing.CHUNKED) head.append('transfer-encoding', 'chunked');
  return true;
}
