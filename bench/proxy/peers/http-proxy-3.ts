// A peer of the benchmark: http-proxy-3 with keep-alive to the upstream and the same header work as the others.
// Usage: node http-proxy-3.ts <port> <upstream port>

import { randomUUID } from 'node:crypto';
import { Agent, createServer } from 'node:http';
import httpProxy from 'http-proxy-3';

const [port, upstreamPort] = process.argv.slice(2).map(Number);
const proxy = httpProxy.createProxyServer({
  target: `http://127.0.0.1:${upstreamPort}`,
  agent: new Agent({ keepAlive: true, maxSockets: 256 }),
  xfwd: true,
});
proxy.on('proxyReq', (request) => {
  request.setHeader('x-request-id', randomUUID());
  request.setHeader('via', '1.1 bench');
});
proxy.on('error', (_error, _request, response) => {
  if ('writeHead' in response) response.writeHead(502).end();
  else response.destroy();
});
createServer((request, response) => {
  response.setHeader('via', '1.1 bench');
  proxy.web(request, response);
}).listen(port, '127.0.0.1');
