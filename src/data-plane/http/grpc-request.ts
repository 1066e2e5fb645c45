// What tells requests of gRPC from others.

import { HEADER_ID, type RequestHead } from '../../wasm/http1.ts';

const CONTENT_TYPE = HEADER_ID['content-type'];
const GRPC = 'application/grpc';

/** By its type: `application/grpc`, or that and `+` with the form of its messages; not application/grpc-web. Hot. */
export function isGrpc(head: RequestHead): boolean {
  const index = head.indexOf(CONTENT_TYPE);
  return index >= 0 && head.valueBegins(index, GRPC, '+');
}
