// A peer of the benchmark: fastify with @fastify/http-proxy and the same header work as the others.
// Usage: node fastify-http-proxy.ts <port> <upstream port>

import { randomUUID } from 'node:crypto';
import fastifyHttpProxy from '@fastify/http-proxy';
import fastify from 'fastify';

const [port, upstreamPort] = process.argv.slice(2).map(Number);
const app = fastify({ logger: false });
await app.register(fastifyHttpProxy, {
  upstream: `http://127.0.0.1:${upstreamPort}`,
  undici: { connections: 256, pipelining: 1 },
  replyOptions: {
    rewriteRequestHeaders: (request, headers) => ({
      ...headers,
      'x-forwarded-for': request.ip,
      'x-forwarded-proto': 'http',
      'x-request-id': randomUUID(),
      via: '1.1 bench',
    }),
    rewriteHeaders: (headers) => ({ ...headers, via: '1.1 bench' }),
  },
});
await app.listen({ port: port!, host: '127.0.0.1' });
