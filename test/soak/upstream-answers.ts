// What the upstreams of the soak answer. Paths say what to do, and `x-soak-id` comes back with every answer:
//
//   /get/<seed>/<length>      a body with content-length      /chunked/<seed>/<length>   the same in chunks
//   /sink/<seed>/<length>     takes that body and says ok     /echo                      the body as it comes
//   /reset/head, /reset/body  resets before or in the answer

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { PayloadCheck, payload } from './payload.ts';

type Answer = (request: IncomingMessage, response: ServerResponse, args: readonly string[]) => Promise<void> | void;

async function sink(request: IncomingMessage, response: ServerResponse, [seed, length]: readonly string[]) {
  const check = new PayloadCheck(Number(seed), Number(length));
  for await (const chunk of request) check.accept(chunk as Buffer);
  const verdict = check.verdict();
  // Not a status that the proxy answers by itself.
  response.writeHead(verdict === '' ? 200 : 599, { 'content-length': Buffer.byteLength(verdict) });
  response.end(verdict);
}

function send(isChunked: boolean): Answer {
  return async (request, response, [seed, length]) => {
    request.resume();
    if (!isChunked) response.setHeader('content-length', length!);
    await pipeline(Readable.from(payload(Number(seed), Number(length))), response);
  };
}

function reset(request: IncomingMessage, response: ServerResponse, [stage]: readonly string[]): void {
  if (stage === 'body') {
    response.setHeader('content-length', 1_000_000);
    response.write('x'.repeat(1000), () => request.socket.resetAndDestroy());
  } else request.socket.resetAndDestroy();
}

const ANSWERS: Readonly<Record<string, Answer>> = {
  get: send(false),
  chunked: send(true),
  sink,
  echo: async (request, response) => {
    const length = request.headers['content-length'];
    if (length !== undefined) response.setHeader('content-length', length);
    response.flushHeaders();
    await pipeline(request, response);
  },
  reset,
};

/** Never fails: a proxy that goes away in the middle, as it does when its client has, ends it. */
export async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, kind = '', ...args] = request.url!.split('/');
  response.setHeader('x-soak-id', request.headers['x-soak-id'] ?? 'none');
  try {
    await ANSWERS[kind]!(request, response, args);
  } catch {
    request.socket.destroy();
  }
}
