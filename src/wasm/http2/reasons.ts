// The phrases that status lines of HTTP/1 say beside the number (RFC 9112 section 4). Clients may ignore them, but some that
// get none lose the number, too.

import * as layout from '../../../assembly/layout/http2.ts';
import { STATUS_CODES } from '../../base/node-http.ts';
import type { CodecMemory } from '../http1/memory.ts';

/** Once per codec memory, before the first block. */
export function writeReasons({ bytes, u16 }: CodecMemory): void {
  // In front of the others is the empty one, of every status without a phrase.
  let at: number = layout.REASON_TEXT + 1;
  for (const [status, reason] of Object.entries(STATUS_CODES)) {
    const index = Number(status) - 100;
    if (reason === undefined || index >= layout.REASON_COUNT) continue;
    if (at + 1 + reason.length > layout.REASON_TEXT + layout.REASON_TEXT_BYTES) {
      throw new RangeError('the reason phrases do not fit their layout');
    }
    u16[(layout.REASON_INDEX >> 1) + index] = at - layout.REASON_TEXT;
    bytes[at] = reason.length;
    at += 1 + bytes.write(reason, at + 1, 'latin1');
  }
}
