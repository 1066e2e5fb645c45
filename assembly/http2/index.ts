// HPACK (RFC 7541) and what RFC 9113 section 8 says of heads. One instance per worker, over the same memory as the
// HTTP/1 module: a block becomes the head that HTTP/1 would have brought, and any such head becomes a block. No heap, no
// static data; connections' tables lie where the facade has allocated them. Frames and streams are not known here.

import { LAYOUT_VERSION } from '../layout/http1';

export { decodePart, decodeRequest, decodeResponse, decodeTrailers } from './decode';
export { encodeLines, encodeRequest, encodeResponse } from './encode';
export { initTable, limitTable, moveTable, setPeerLimit } from './table';

/** Both modules share one memory and thus one layout. */
export function layoutVersion(): u32 {
  return LAYOUT_VERSION;
}
