// A real HTTP upstream on a free loopback port whose answers tell what it was asked.

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface EchoUpstream extends AsyncDisposable {
  readonly port: number;
  /** Requests answered so far. */
  readonly requests: number;
}

async function bodyLength(request: IncomingMessage): Promise<number> {
  let bytes = 0;
  for await (const chunk of request) bytes += (chunk as Buffer).length;
  return bytes;
}

/** Answers every request with `{ upstream, method, path, host, bodyBytes }` as JSON. */
export async function startEchoUpstream(name: string): Promise<EchoUpstream> {
  let requests = 0;
  const server = createServer(async (request, response) => {
    const { method, url: path } = request;
    const answer = { upstream: name, method, path, host: request.headers.host, bodyBytes: await bodyLength(request) };
    requests += 1;
    const text = JSON.stringify(answer);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
    response.end(text);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get requests() {
      return requests;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
