// POST /tap of the real program: two workers, real sockets, readers that are slow or vanish.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import {
  clusterNamed,
  httpFilter,
  type Json,
  type JsonObject,
  listenerWith,
  ROUTER,
  socketAddress,
} from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const TAP: JsonObject = {
  name: 'envoy.filters.http.tap',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.tap.v3.Tap',
    common_config: { admin_config: { config_id: 'edge' } },
  },
};

/** Answers with the body that it was sent, and with trailers. */
async function startUpstream(t: TestContext): Promise<number> {
  const server = createServer((incoming, response) => {
    response.writeHead(200, { 'x-answer': 'yes', trailer: 'x-sum' });
    incoming.pipe(response, { end: false });
    incoming.on('end', () => {
      response.addTrailers({ 'x-sum': '7' });
      response.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function startProxy(
  t: TestContext,
  filters: readonly Json[] = [TAP, ROUTER],
): Promise<{ weir: WeirProcess; url: string }> {
  const upstream = { endpoint: { address: socketAddress('127.0.0.1', await startUpstream(t)) } };
  const cluster = clusterNamed('web', {
    load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [upstream] }] },
    http_protocol_options: { enable_trailers: true },
  });
  const direct = { match: { prefix: '/direct' }, direct_response: { status: 503, body: { inline_string: 'no way' } } };
  const forward = { match: { prefix: '/' }, route: { cluster: 'web' } };
  const manager = httpFilter({
    http_filters: filters,
    http_protocol_options: { enable_trailers: true },
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [direct, forward] }] },
  });
  const weir = await startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: {
        listeners: [listenerWith([manager], { address: socketAddress('127.0.0.1', 0) })],
        clusters: [cluster],
      },
    }),
    args: ['--concurrency', '2'],
  });
  t.after(async () => {
    await weir.stop();
  });
  const { ip, port } = [...(await weir.listeners()).values()][0]!;
  return { weir, url: `http://${ip}:${port}` };
}

/** A tap that is under way, and what has come of it so far. */
class TapReader {
  readonly socket: Socket;
  #bytes = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
    });
  }

  static async open(weir: WeirProcess, order: Json): Promise<TapReader> {
    const { hostname, port } = new URL(weir.adminUrl);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => {});
    await once(socket, 'connect');
    const body = JSON.stringify(order);
    const reader = new TapReader(socket);
    socket.write(
      `POST /tap HTTP/1.1\r\nhost: ${hostname}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    await reader.until(() => reader.head !== '');
    assert.match(reader.head, /^HTTP\/1\.1 200 OK\r\n/);
    return reader;
  }

  get head(): string {
    const end = this.#bytes.indexOf('\r\n\r\n');
    return end < 0 ? '' : this.#bytes.subarray(0, end).toString('latin1');
  }

  get body(): Buffer {
    const end = this.#bytes.indexOf('\r\n\r\n');
    return end < 0 ? Buffer.alloc(0) : this.#bytes.subarray(end + 4);
  }

  /** Whole messages so far: each ends with a brace at the beginning of a line. */
  get traces(): Record<string, Record<string, unknown>>[] {
    const texts = this.body.toString().split(/(?<=^\}\n)/m);
    return texts.filter((text) => text.endsWith('\n}\n')).map((text) => JSON.parse(text));
  }

  async until(isEnough: () => boolean): Promise<void> {
    while (!isEnough()) await once(this.socket, 'data');
  }
}

function order(tapConfig: JsonObject, output: JsonObject = {}): JsonObject {
  return {
    config_id: 'edge',
    tap_config: {
      output_config: { sinks: [{ format: 'JSON_BODY_AS_STRING', streaming_admin: {} }], ...output },
      ...tapConfig,
    },
  };
}

const ANY: JsonObject = { match: { any_match: true } };

/** On a connection of its own, so that workers share what is sent. */
async function send(url: string, body = '', headers: Record<string, string> = {}): Promise<number> {
  const sent = request(url, { method: body === '' ? 'GET' : 'POST', headers, agent: false });
  sent.end(body);
  const [response] = await once(sent, 'response');
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

async function refusal(weir: WeirProcess, body: string): Promise<[status: number, text: string]> {
  const response = await fetch(`${weir.adminUrl}/tap`, { method: 'POST', body });
  return [response.status, await response.text()];
}

describe('a tap', () => {
  it('tells of each exchange when it is over, whichever worker had it, and ends with its reader', async (t) => {
    const { weir, url } = await startProxy(t);
    await send(`${url}/before`);
    const reader = await TapReader.open(weir, order(ANY));
    assert.match(reader.head, /\r\ncontent-type: application\/json\r\n/);
    for (let at = 0; at < 12; at += 1) await send(`${url}/at/${at}`, `body ${at}`, { 'x-at': String(at) });
    await reader.until(() => reader.traces.length === 12);
    const { request: first, response: answer } = reader.traces
      .map(({ http_buffered_trace: trace }) => trace!)
      .find(({ request: asked }) => JSON.stringify(asked).includes('/at/3"'))! as Record<
      string,
      Record<string, unknown>
    >;
    const fields = (list: unknown) =>
      Object.fromEntries((list as { key: string; value: string }[]).map(({ key, value }) => [key, value]));
    assert.equal(fields(first!.headers)[':path'], '/at/3');
    assert.equal(fields(first!.headers)[':method'], 'POST');
    assert.equal(fields(first!.headers)[':scheme'], 'http');
    assert.equal(fields(first!.headers)[':authority'], new URL(url).host);
    assert.equal(fields(first!.headers)['x-at'], '3');
    assert.equal(fields(first!.headers).host, undefined);
    assert.deepEqual(first!.body, { as_string: 'body 3', truncated: false });
    assert.deepEqual(first!.trailers, []);
    assert.equal(fields(answer!.headers)[':status'], '200');
    assert.equal(fields(answer!.headers)['x-answer'], 'yes');
    assert.deepEqual(answer!.body, { as_string: 'body 3', truncated: false });
    assert.deepEqual(answer!.trailers, [{ key: 'x-sum', value: '7' }]);
    assert.equal(await weir.stat('tap.traces_total'), 12);
    await weir.untilStat('http.ingress.tap.rq_tapped', 12);

    reader.socket.resetAndDestroy();
    await weir.untilStat('tap.active', 0);
    await send(`${url}/after`);
    assert.equal(await weir.stat('http.ingress.tap.rq_tapped'), 12);
    const again = await TapReader.open(weir, order(ANY));
    await send(`${url}/again`);
    await again.until(() => again.traces.length === 1);
    again.socket.destroy();
  });

  it('is one at a time, of a filter that there is, and wants a body that says what', async (t) => {
    const { weir } = await startProxy(t);
    assert.deepEqual(await refusal(weir, ''), [400, '/tap requires a JSON/YAML body']);
    const unknown = JSON.stringify(order(ANY)).replace('edge', 'core');
    assert.deepEqual(await refusal(weir, unknown), [
      400,
      "Unknown config id 'core'. No extension has registered with this id.",
    ]);
    const [status, text] = await refusal(
      weir,
      'config_id: edge\ntap_config:\n  match: {any_match: true}\n  nonsense: 1\n',
    );
    assert.equal(status, 400);
    assert.match(text, /^body:\d+:\d+: tap_config.*nonsense/m);
    const reader = await TapReader.open(weir, order(ANY));
    assert.deepEqual(await refusal(weir, JSON.stringify(order(ANY))), [
      400,
      'An attached /tap admin stream already exists. Detach it.',
    ]);
    reader.socket.destroy();
    await weir.untilStat('tap.active', 0);
    const byGet = await fetch(`${weir.adminUrl}/tap`);
    assert.deepEqual([byGet.status, await byGet.text()], [400, 'Method GET not allowed, POST required.']);
  });

  it('is not there without a filter that can record', async (t) => {
    const { weir } = await startProxy(t, [ROUTER]);
    const [status, text] = await refusal(weir, JSON.stringify(order(ANY)));
    assert.equal(status, 404);
    assert.doesNotMatch(text, /\/tap/);
  });

  it('reads its order as YAML', async (t) => {
    const { weir, url } = await startProxy(t);
    const response = await fetch(`${weir.adminUrl}/tap`, {
      method: 'POST',
      body: [
        'config_id: edge',
        'tap_config:',
        '  match_config:',
        '    http_request_headers_match:',
        '      headers: [{name: x-wanted, exact_match: "1"}]',
        '  output_config:',
        '    sinks: [{buffered_admin: {max_traces: 2}}]',
      ].join('\n'),
    });
    assert.equal(response.status, 200);
    await send(`${url}/a`, 'abc', { 'x-wanted': '1' });
    await send(`${url}/b`, 'abc');
    await send(`${url}/c`, 'abc', { 'x-wanted': '1' });
    const text = await response.text();
    assert.equal(text.match(/"http_buffered_trace"/g)?.length, 2);
    assert.match(text, /"as_bytes": "YWJj"/);
    assert.doesNotMatch(text, /"\/b"/);
    await weir.untilStat('tap.active', 0);
  });

  it('ends when its time is over, with what there is by then', async (t) => {
    const { weir, url } = await startProxy(t);
    const output = { sinks: [{ format: 'JSON_BODY_AS_STRING', buffered_admin: { max_traces: 1000, timeout: '3s' } }] };
    const reader = await TapReader.open(weir, order(ANY, output));
    await send(`${url}/one`);
    await weir.untilStat('tap.traces_total', 1);
    await once(reader.socket, 'end');
    assert.equal(reader.traces.length, 1);
    assert.equal(await weir.stat('tap.active'), 0);
  });

  it('cuts bodies, and says so', async (t) => {
    const { weir, url } = await startProxy(t);
    const reader = await TapReader.open(weir, order(ANY, { max_buffered_rx_bytes: 5, max_buffered_tx_bytes: 0 }));
    await send(`${url}/`, '0123456789');
    await reader.until(() => reader.traces.length === 1);
    const { request: asked, response: answer } = reader.traces[0]!.http_buffered_trace as Record<
      string,
      { body: unknown }
    >;
    assert.deepEqual(asked!.body, { as_string: '01234', truncated: true });
    assert.deepEqual(answer!.body, { as_string: '', truncated: true });
    reader.socket.destroy();
  });

  it('shows what the proxy answers itself', async (t) => {
    const { weir, url } = await startProxy(t);
    const reader = await TapReader.open(
      weir,
      order({ match: { http_response_headers_match: { headers: [{ name: ':status', exact_match: '503' }] } } }),
    );
    assert.equal(await send(`${url}/other`), 200);
    assert.equal(await send(`${url}/direct`), 503);
    await reader.until(() => reader.traces.length === 1);
    const { response: answer } = reader.traces[0]!.http_buffered_trace as Record<string, { body: unknown }>;
    assert.deepEqual(answer!.body, { as_string: 'no way', truncated: false });
    reader.socket.destroy();
  });

  it('tells of exchanges piece by piece from the moment that it is clear that they match', async (t) => {
    const { weir, url } = await startProxy(t);
    const match = { http_response_headers_match: { headers: [{ name: 'x-answer', present_match: true }] } };
    const reader = await TapReader.open(weir, order({ match }, { streaming: true }));
    await send(`${url}/streamed`, 'hello');
    await reader.until(() => reader.traces.some((trace) => 'response_trailers' in trace.http_streamed_trace_segment!));
    const segments = reader.traces.map((trace) => trace.http_streamed_trace_segment!);
    const parts = segments.map((segment) => Object.keys(segment).find((key) => key !== 'trace_id'));
    assert.deepEqual(
      parts.filter((part, at) => part !== parts[at - 1]),
      ['request_headers', 'request_body_chunk', 'response_headers', 'response_body_chunk', 'response_trailers'],
    );
    assert.equal(new Set(segments.map(({ trace_id }) => trace_id)).size, 1);
    assert.match(String(segments[0]!.trace_id), /^\d+$/);
    reader.socket.destroy();
    await weir.untilStat('tap.active', 0);
    await weir.untilStat('http.ingress.tap.rq_tapped', 1);
  });

  it('does without what a reader does not take, and goes on', async (t) => {
    const { weir, url } = await startProxy(t);
    const reader = await TapReader.open(
      weir,
      order(ANY, { max_buffered_rx_bytes: 1_000_000, max_buffered_tx_bytes: 1_000_000 }),
    );
    reader.socket.pause();
    const body = 'x'.repeat(1_000_000);
    const isDropping = async (): Promise<boolean> => {
      assert.equal(await send(`${url}/`, body), 200);
      return ((await weir.stat('tap.traces_dropped')) ?? 0) > 0;
    };
    await untilEqual(true, isDropping, 'traces being dropped');
    reader.socket.resetAndDestroy();
    await weir.untilStat('tap.active', 0);
    assert.equal(await send(`${url}/`, body), 200);
  });

  it('ends with the server', async (t) => {
    const { weir } = await startProxy(t);
    const reader = await TapReader.open(weir, order(ANY));
    const ended = once(reader.socket, 'end');
    assert.equal((await weir.stop()).code, 0);
    await ended;
  });
});

describe('a tap filter with a static configuration', () => {
  it('writes a file for each exchange that matches, while nobody asks for anything', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-tap-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const match = { http_request_headers_match: { headers: [{ name: 'x-tap', string_match: { exact: 'yes' } }] } };
    const sinks = [{ format: 'JSON_BODY_AS_STRING', file_per_tap: { path_prefix: path.join(folder, 'edge') } }];
    const filter: JsonObject = {
      name: 'envoy.filters.http.tap',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.tap.v3.Tap',
        common_config: { static_config: { match, output_config: { sinks } } },
      },
    };
    const { weir, url } = await startProxy(t, [filter, ROUTER]);
    for (const wanted of ['yes', 'no', 'yes']) {
      const response = await fetch(url, { method: 'POST', body: 'hello', headers: { 'x-tap': wanted } });
      assert.equal(await response.text(), 'hello');
    }
    await weir.untilStat('tap.traces_total', 2);
    const files = readdirSync(folder);
    assert.equal(files.length, 2);
    for (const file of files) {
      assert.match(file, /^edge_\d+\.json$/);
      const { request: asked, response } = JSON.parse(
        readFileSync(path.join(folder, file), 'utf8'),
      ).http_buffered_trace;
      assert.deepEqual([asked.body.as_string, response.body.as_string], ['hello', 'hello']);
    }
    assert.equal((await fetch(`${weir.adminUrl}/tap`, { method: 'POST', body: '{}' })).status, 404);
  });
});
