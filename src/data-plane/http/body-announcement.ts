// How a head announces a body that filters have changed.

import { Framing, type MessageHead } from '../../wasm/http1.ts';

/**
 * Makes a head announce a body of this length, or for null one whose end nobody knows yet.
 * @returns how its bytes are framed, one of Framing: whoever writes them puts on what their protocol needs.
 */
export function announceBody(head: MessageHead, length: number | null): number {
  const isSaid = length !== null && head.framing === Framing.LENGTH && head.contentLength === length;
  // A filter may have taken the field away.
  if (isSaid && head.hasField('content-length')) return Framing.LENGTH;
  head.removeField('transfer-encoding');
  head.removeField('content-length');
  if (length === null) return Framing.UNTIL_CLOSE;
  head.append('content-length', String(length));
  return Framing.LENGTH;
}
