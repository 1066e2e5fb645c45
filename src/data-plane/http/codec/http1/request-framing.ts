// How the body of a request goes out over HTTP/1.1, where that is not as it came: in chunks of its own if nothing has said
// where it ends, and with its trailers.

import { Framing } from '../../../../wasm/http1.ts';
import { frameChunk } from '../../chunk-framing.ts';
import { insertTrailers } from '../../trailers.ts';
import type { ResponseReceiver } from '../upstream-stream.ts';

const LINE_END = '\r\n';
const CHUNKED_END = 'transfer-encoding: chunked\r\n\r\n';

/** The body of such requests goes in chunks; that of others is not looked at. */
export function isInChunks(framing: number): boolean {
  return framing === Framing.CHUNKED || framing === Framing.UNTIL_CLOSE;
}

/** A head that says so. */
export function headInChunks(head: string, framing: number): string {
  return framing === Framing.CHUNKED ? head : head.slice(0, -LINE_END.length) + CHUNKED_END;
}

/** @returns null for bytes that go as they came. */
export function bodyInChunks(
  { requestFraming, requestTrailers }: ResponseReceiver,
  passesTrailers: boolean,
  bytes: Buffer,
  start: number,
  end: number,
  isEnd: boolean,
): Buffer | null {
  const trailers = isEnd && passesTrailers ? requestTrailers : null;
  if (requestFraming !== Framing.CHUNKED) return frameChunk([bytes.subarray(start, end)], isEnd, trailers);
  return trailers === null ? null : insertTrailers(bytes, start, end, trailers);
}
