// The access log of the router: an entry for each attempt of a request, with what the attempt alone has come to; and what else it
// tells on the way.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type JsonObject, managerFaults } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { HTTP2 } from '../support/guarded-proxy.ts';
import { ECHO, Http2Upstream } from '../support/http2-upstream.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const ROUTER = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';
const FORMAT =
  '%ACCESS_LOG_TYPE% %REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %BYTES_SENT% %BYTES_RECEIVED%' +
  ' %RESP(x-said)% %ROUTE_NAME% %UPSTREAM_CLUSTER% %PROTOCOL% %RESPONSE_CODE_DETAILS%\n';

function logTo(file: string, format: string): JsonObject {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
    path: file,
    log_format: { text_format_source: { inline_string: format } },
  };
  return { name: 'envoy.access_loggers.file', typed_config };
}

function router(file: string, options: JsonObject = {}, filter: JsonObject = {}, format = FORMAT): JsonObject {
  const upstream_log = [{ ...logTo(file, format), ...filter }];
  const settings = { '@type': ROUTER, upstream_log, upstream_log_options: options };
  return { name: 'envoy.filters.http.router', typed_config: settings };
}

interface Bench {
  readonly client: WireClient;
  /** What the log holds by now. */
  soFar(): string;
  /** Ends the proxy, which flushes its logs. */
  entries(): Promise<string[]>;
}

interface LogOptions {
  readonly options?: JsonObject;
  readonly cluster?: JsonObject;
  readonly filter?: JsonObject;
  readonly format?: string;
  /** The request has an entry of the same format, behind those of its attempts. */
  readonly ofRequest?: boolean;
}

async function logging(
  t: TestContext,
  port: number,
  action: JsonObject = {},
  { options = {}, cluster = {}, filter = {}, format = FORMAT, ofRequest = false }: LogOptions = {},
): Promise<Bench> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-upstream-log-'));
  const file = path.join(folder, 'log');
  const route = routeTo('/', {}, { name: 'all', route: { cluster: 'web', ...action } });
  const access_log = ofRequest ? [logTo(file, format)] : [];
  const manager = { http_filters: [router(file, options, filter, format)], access_log };
  const proxy = await createProxy(
    bootstrapOf([filteredListener([], [route], { manager })], [clusterAt('web', port, cluster)]),
    { fileFlushIntervalMsec: 20 },
  );
  t.after(() => proxy.close());
  t.after(() => rmSync(folder, { recursive: true }));
  const client = new WireClient(proxy.listeners.get('main')!.port);
  const soFar = (): string => readFileSync(file, 'latin1');
  const entries = async (): Promise<string[]> => {
    await eventually(() => proxy.stats.value('http.main.downstream_rq_active') === 0, 'no request left');
    client.close();
    await proxy.close();
    return soFar().split('\n').slice(0, -1);
  };
  return { client, soFar, entries };
}

async function upstream(t: TestContext, onRequest: RequestListener): Promise<number> {
  const server = createServer(onRequest);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

const POST = 'POST /p HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc';
const RETRIES: JsonObject = {
  retry_policy: { retry_on: '5xx', num_retries: 2, retry_back_off: { base_interval: '0.001s' } },
};

describe('the log of attempts', () => {
  test('has an entry for each of them', async (t) => {
    let count = 0;
    const port = await upstream(t, (request, response) => {
      count += 1;
      request.resume();
      const body = count === 1 ? 'sorry' : 'done';
      response.writeHead(count === 1 ? 503 : 201, { 'x-said': `answer ${count}`, 'content-length': body.length });
      response.end(body);
    });
    const { client, entries } = await logging(t, port, RETRIES);
    assert.equal((await client.write(POST).response()).status, 201);
    assert.deepEqual(await entries(), [
      'UpstreamEnd /p 503 - 1 3 5 answer 1 all web HTTP/1.1 via_upstream',
      'UpstreamEnd /p 201 - 2 3 4 answer 2 all web HTTP/1.1 via_upstream',
    ]);
  });

  test('tells what each has been on the wire, and the log of the request what all have been', async (t) => {
    const asked: number[] = [];
    const answers = [
      'HTTP/1.1 503 No\r\ncontent-length: 5\r\n\r\nsorry',
      'HTTP/1.1 200 OK\r\nx-said: done\r\ncontent-length: 2\r\n\r\nok',
    ];
    const server = await WireUpstream.start((socket) => {
      socket.on('data', (bytes: Buffer) => {
        socket.write(answers[asked.length]!);
        asked.push(bytes.length);
      });
    });
    t.after(() => server.close());
    const format = '%UPSTREAM_WIRE_BYTES_SENT% %UPSTREAM_WIRE_BYTES_RECEIVED%\n';
    const { client, entries } = await logging(t, server.port, RETRIES, { format, ofRequest: true });
    assert.equal((await client.write(POST).response()).status, 200);
    const each = asked.map((bytes, index) => [bytes, answers[index]!.length]);
    const sums = [0, 1].map((column) => each.reduce((sum, row) => sum + row[column]!, 0));
    assert.deepEqual(
      (await entries()).map((entry) => entry.split(' ').map(Number)),
      [...each, sums],
    );
  });

  test('tells which connection each has had, and how long it has waited for that', async (t) => {
    const port = await upstream(t, (request, response) => {
      request.resume();
      response.writeHead(request.url === '/last' ? 200 : 503, { 'content-length': 0 }).end();
    });
    const format = '%UPSTREAM_CONNECTION_ID% %UPSTREAM_CONNECTION_POOL_READY_DURATION% %CONNECTION_ID%\n';
    const { client, entries } = await logging(t, port, RETRIES, { format });
    await client.write(POST).response();
    await client.write(POST.replace('/p', '/last')).response();
    const all = (await entries()).map((entry) => entry.split(' ').map(Number));
    const [first] = all;
    assert.equal(all.length, 4);
    for (const [own, waitedMs, ofClient] of all) {
      assert.ok(own! > 0 && own !== ofClient && waitedMs! >= 0, String(all));
      assert.deepEqual([own, ofClient], [first![0], first![2]]);
    }
  });

  test('tells the whole request of all of them', async (t) => {
    const port = await upstream(t, (request, response) => {
      request.resume();
      response.writeHead(request.url === '/last' ? 200 : 503, { 'content-length': 0 }).end();
    });
    const format = '%UPSTREAM_REQUEST_ATTEMPT_COUNT% %UPSTREAM_HOSTS_ATTEMPTED% %UPSTREAM_CONNECTION_IDS_ATTEMPTED%\n';
    const { client, entries } = await logging(t, port, RETRIES, { format, ofRequest: true });
    await client.write(POST).response();
    await client.write(POST.replace('/p', '/last')).response();
    const counted = (await entries()).map((entry) => {
      const [attempts, hosts, connections] = entry.split(' ');
      const known = hosts!.split(',');
      assert.deepEqual(new Set(known), new Set([`127.0.0.1:${port}`]));
      assert.equal(connections!.split(',').length, known.length);
      return [Number(attempts), known.length];
    });
    // Each attempt knows itself alone; the request behind them knows all.
    assert.deepEqual(counted, [
      [1, 1],
      [2, 1],
      [3, 1],
      [3, 3],
      [1, 1],
      [1, 1],
    ]);
  });

  test('tells of attempts that find nobody', async (t) => {
    const { client, entries } = await logging(t, await unusedPort(), RETRIES);
    assert.equal((await client.write(POST).response()).status, 503);
    const all = await entries();
    assert.equal(all.length, 3);
    for (const [index, entry] of all.entries()) {
      const details = String.raw`upstream_reset_before_response_started\{remote_connection_failure.*\}`;
      assert.match(entry, new RegExp(`^UpstreamEnd /p 0 UF ${index + 1} 0 0 - all web - ${details}$`));
    }
  });

  test('tells of those that are given up, and of those that are cut', async (t) => {
    const port = await upstream(t, (request) => {
      request.resume();
      if (request.url === '/cut') request.socket.destroy();
    });
    const { client, entries } = await logging(t, port, { timeout: '1s' });
    assert.equal((await client.write('GET /slow HTTP/1.1\r\nhost: a\r\n\r\n').response()).status, 504);
    assert.equal((await client.write(POST.replace('/p', '/cut')).response()).status, 503);
    const [slow, cut, ...others] = await entries();
    assert.equal(slow, 'UpstreamEnd /slow 0 UT 1 0 0 - all web HTTP/1.1 response_timeout');
    assert.match(
      cut!,
      /^UpstreamEnd \/cut 0 UC 1 3 0 - all web HTTP\/1\.1 upstream_reset_before_response_started\{conn/,
    );
    assert.deepEqual(others, []);
  });

  test('tells when a request goes out, and how it gets on', async (t) => {
    let end = (): void => {};
    const port = await upstream(t, (_request, response) => {
      response.writeHead(200, { 'x-said': 'soon', 'content-length': 6 }).write('begun');
      end = () => response.end('!');
    });
    const options = { flush_upstream_log_on_upstream_stream: true, upstream_log_flush_interval: '0.05s' };
    const { client, soFar, entries } = await logging(t, port, {}, { options });
    client.write('GET /long HTTP/1.1\r\nhost: a\r\n\r\n');
    await client.until('begun');
    await untilEqual(true, () => soFar().includes('UpstreamPeriodic /long 200'), 'an entry on the way');
    end();
    await client.until('!');
    const all = await entries();
    assert.equal(all[0], 'UpstreamPoolReady /long 0 - 1 0 0 - all web HTTP/1.1 -');
    const meanwhile = all.slice(1, -1);
    const unanswered = 'UpstreamPeriodic /long 0 - 1 0 0 - all web HTTP/1.1 -';
    const answered = meanwhile.slice(meanwhile.lastIndexOf(unanswered) + 1);
    assert.ok(answered.length > 0);
    for (const entry of answered) {
      assert.equal(entry, 'UpstreamPeriodic /long 200 - 1 0 5 soon all web HTTP/1.1 via_upstream');
    }
    assert.match(all.at(-1)!, /^UpstreamEnd \/long 200 - 1 0 6 soon all web HTTP\/1\.1 via_upstream$/);
  });

  test('knows upstreams of HTTP/2, and has filters as others', async (t) => {
    const { port } = await Http2Upstream.start(t, ECHO);
    const comparison = { op: 'GE', value: { default_value: 400, runtime_key: 'x' } };
    const filter = { filter: { not_health_check_filter: {} } };
    const { client, entries } = await logging(t, port, {}, { cluster: HTTP2, filter });
    await client.write(POST).until('abc');
    assert.deepEqual(await entries(), ['UpstreamEnd /p 200 - 1 3 3 - all web HTTP/2 via_upstream']);
    const failures = { filter: { status_code_filter: { comparison } } };
    const silent = await logging(t, port, {}, { cluster: HTTP2, filter: failures });
    await silent.client.write(POST).until('abc');
    assert.deepEqual(await silent.entries(), []);
  });

  test('has faults where it stands', () => {
    const bad = router('/tmp/log');
    const typed = bad.typed_config as { upstream_log: { typed_config: { log_format: JsonObject } }[] };
    typed.upstream_log[0]!.typed_config.log_format = { text_format_source: { inline_string: '%NO_SUCH%' } };
    const texts = managerFaults({ http_filters: [bad] }).join('\n');
    assert.match(texts, /http_filters\[0\]\.typed_config\.upstream_log\[0\]\..*NO_SUCH/);
  });
});
