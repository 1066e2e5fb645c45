// Heads as the codec has parsed them, for units that read or edit them. Each is valid until the next of its kind.

import assert from 'node:assert/strict';
import { RouteRequest } from '../../src/data-plane/route/route-request.ts';
import { compileHttp1, Http1Codec, Method, type RequestHead, type ResponseHead } from '../../src/wasm/http1.ts';

const LIMITS = { maxHeadBytes: 60_000, maxFields: 100 };
const codec = new Http1Codec(compileHttp1());

/** @param startLine method and target. @param lines without their ends, beside Host. */
export function requestHead(startLine: string, ...lines: readonly string[]): RequestHead {
  return requestHeadOf(`${[`${startLine} HTTP/1.1`, 'host: h', ...lines].join('\r\n')}\r\n\r\n`);
}

export function requestHeadOf(text: string): RequestHead {
  const bytes = Buffer.from(text, 'latin1');
  assert.ok(codec.parseRequest(bytes, 0, bytes.length, LIMITS) > 0);
  return codec.request;
}

export function responseHead(status: number, ...lines: readonly string[]): ResponseHead {
  const bytes = Buffer.from(`${[`HTTP/1.1 ${status} X`, ...lines].join('\r\n')}\r\n\r\n`, 'latin1');
  assert.ok(codec.parseResponse(bytes, 0, bytes.length, LIMITS, Method.GET) > 0);
  return codec.response;
}

/** What is matched by a route table, of the head that `requestHead` made last. */
export function routeRequest(head: RequestHead, isInternal = false): RouteRequest {
  const request = new RouteRequest({ u32: () => 0 });
  request.read(head, isInternal, false);
  return request;
}

/** The request head as it would be sent, by lines without their ends. */
export function writtenLines(): string[] {
  const length = codec.writeRequest();
  assert.ok(length > 0);
  return codec.requestText(length).split('\r\n').slice(0, -2);
}
