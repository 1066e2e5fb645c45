// A browser in front of the real program, over TLS: what a site asks of its proxy, by HTTP/2 and where that is not offered by
// HTTP/1.1, without a complaint of the browser.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { WebSocketServer } from 'ws';
import { NO_BROWSER, openBrowser, openPage } from '../support/browser.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { type GrpcService, grpcService } from '../support/grpc-calls.ts';
import { bootstrapOf, clusterAt, pair, tlsListener } from '../support/tls-config.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const PARTS = 50;
/** Of each of them: more than one frame. */
const PART_BYTES = 40_000;
const UPLOAD_BYTES = 3_000_000;

/** Many things that a page loads at once. */
const PAGE = `<!doctype html><title>parts</title><link rel="icon" href="data:,">
${Array.from({ length: PARTS }, (_, at) => `<script src="/part/${at}" async></script>`).join('\n')}
<script>window.parts = 0;</script>`;

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { url = '' } = request;
  if (url.startsWith('/part/')) {
    response.setHeader('content-type', 'text/javascript');
    response.end(`window.parts = (window.parts ?? 0) + 1;${' '.repeat(PART_BYTES)}`);
  } else if (url === '/upload') {
    const hash = createHash('sha256');
    request.on('data', (bytes: Buffer) => hash.update(bytes));
    request.on('end', () => response.end(hash.digest('hex')));
  } else {
    response.setHeader('content-type', 'text/html');
    response.end(PAGE);
  }
}

/** A listener that offers these protocols, with all that a site may want. */
function site(name: string, protocols: readonly string[], certificate: object): object {
  const route = (prefix: string, cluster: string) => ({ match: { prefix }, route: { cluster } });
  const routes = [route('/test.Service/', 'service'), route('/', 'site')];
  return tlsListener(name, {
    common: { alpn_protocols: protocols, tls_certificates: [certificate] },
    http: {
      stat_prefix: name,
      http2_protocol_options: { allow_connect: true },
      upgrade_configs: [{ upgrade_type: 'websocket' }],
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      http_filters: [
        { name: 'web', typed_config: { '@type': `${FILTERS}.grpc_web.v3.GrpcWeb` } },
        { name: 'router', typed_config: { '@type': `${FILTERS}.router.v3.Router` } },
      ],
    },
  });
}

/** @returns the protocols of all that the page has loaded. */
function protocolsOf(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    return [...new Set((entries as PerformanceResourceTiming[]).map(({ nextHopProtocol }) => nextHopProtocol))];
  });
}

/** @returns what comes back for a text and for bytes, by length, and the code of the end. */
function overWebSocket(page: Page): Promise<string[]> {
  return page.evaluate(async () => {
    const socket = new WebSocket(`wss://${location.host}/socket`);
    socket.binaryType = 'arraybuffer';
    const heard: string[] = [];
    await new Promise((resolve) => {
      socket.onopen = () => {
        socket.send('hällo');
        socket.send(new Uint8Array(200_000));
      };
      socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
        heard.push(typeof data === 'string' ? data : `${data.byteLength} bytes`);
        if (heard.length === 2) socket.close(1000);
      };
      socket.onclose = resolve;
    }).then((event) => heard.push(`closed ${(event as CloseEvent).code}`));
    return heard;
  });
}

/** A call as a library of gRPC-Web makes it. @returns status and message of the head, if they are there, and the body in latin1. */
function callOverWeb(page: Page, method: string, text: string): Promise<string> {
  return page.evaluate(
    async ([path, message]) => {
      const bytes = new TextEncoder().encode(message);
      const body = new Uint8Array(5 + bytes.length);
      new DataView(body.buffer).setUint32(1, bytes.length);
      body.set(bytes, 5);
      const headers = { 'content-type': 'application/grpc-web+proto', 'x-grpc-web': '1' };
      const answer = await fetch(path!, { method: 'POST', headers, body });
      const said = ['grpc-status', 'grpc-message'].flatMap((name) => answer.headers.get(name) ?? []);
      return [...said, String.fromCharCode(...new Uint8Array(await answer.arrayBuffer()))].join(' ');
    },
    [method, text] as const,
  );
}

describe('a browser over TLS', { skip: NO_BROWSER }, () => {
  const folder = new CertificateFolder();
  const server = createServer(answer);
  const sockets = new WebSocketServer({ server, path: '/socket' });
  let service: GrpcService;
  let weir: WeirProcess;
  let browser: Browser;

  before(async () => {
    sockets.on('connection', (socket) => {
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    service = await grpcService();
    const certificate = pair(await folder.make('site', { altNames: 'DNS:localhost,IP:127.0.0.1' }));
    const options = {
      typed_extension_protocol_options: {
        [HTTP_OPTIONS]: {
          '@type': `type.googleapis.com/${HTTP_OPTIONS}`,
          explicit_http_config: { http2_protocol_options: {} },
        },
      },
    };
    weir = await startWeir({
      configYaml: bootstrapOf([site('both', ['h2', 'http/1.1'], certificate), site('old', ['http/1.1'], certificate)], {
        clusters: [
          clusterAt('site', (server.address() as AddressInfo).port),
          { ...clusterAt('service', service.port), ...options },
        ],
      }),
    });
    browser = await openBrowser();
  });
  after(async () => {
    await browser?.close();
    await weir?.stop();
    service?.close();
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
    server.close();
    folder[Symbol.dispose]();
  });

  for (const [listener, protocol] of [
    ['both', 'h2'],
    ['old', 'http/1.1'],
  ] as const) {
    it(`loads ${PARTS} things at once, uploads, calls gRPC and holds a WebSocket by ${protocol}`, async () => {
      await using watched = await openPage(browser, { ignoreHTTPSErrors: true });
      const { page, complaints } = watched;
      const { port } = (await weir.listeners()).get(listener)!;
      await page.goto(`https://127.0.0.1:${port}/`, { waitUntil: 'load' });
      assert.equal(await page.evaluate(() => (window as unknown as { parts: number }).parts), PARTS);

      const digest = await page.evaluate(async (bytes) => {
        const upload = await fetch('/upload', { method: 'PUT', body: new Uint8Array(bytes) });
        return await upload.text();
      }, UPLOAD_BYTES);
      assert.equal(digest, createHash('sha256').update(Buffer.alloc(UPLOAD_BYTES)).digest('hex'));

      const said = await callOverWeb(page, '/test.Service/Echo', 'over the web');
      assert.equal(said.slice(0, 18), '\0\0\0\0\x0cover the web\x80');
      for (const trailer of ['grpc-status:0\r\n', 'x-end:yes\r\n']) assert.ok(said.includes(trailer), trailer);
      assert.equal(await callOverWeb(page, '/test.Service/Refuse', 'x'), '7 not%20%C3%BC ');

      assert.deepEqual(await overWebSocket(page), ['hällo', '200000 bytes', 'closed 1000']);
      assert.deepEqual(await protocolsOf(page), [protocol]);
      assert.deepEqual(complaints, []);
    });
  }

  it('needs no connection of HTTP/1.1 for a WebSocket where there is HTTP/2', async () => {
    await weir.untilStat('http.both.downstream_cx_upgrades_total', 1);
    assert.equal(await weir.stat('http.both.downstream_cx_http1_total'), 0);
  });
});
