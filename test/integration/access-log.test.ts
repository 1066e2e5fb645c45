// Access logs by bytes on the wire: what each kind of ending writes into the log, and why it was one.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Random } from '../../src/base/random.ts';
import { parseFormat } from '../../src/config/resources/format/format-string.ts';
import type {
  AccessLogFilter,
  AccessLogSettings,
  HttpConnectionManagerSettings,
  RouteSnapshot,
  RuntimeSetting,
  TcpProxySettings,
} from '../../src/snapshot/index.ts';
import {
  type ClusterOverrides,
  DataPlaneFixture,
  directRoute,
  loopback,
  routeTo,
  tcpProxy,
} from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { filterChain, MATCHES_ALL } from '../support/listeners.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-kind: fine\r\n\r\nok';
const GET = 'GET /a?b=1 HTTP/1.1\r\nhost: web.test\r\nuser-agent: probe\r\n\r\n';
/** A setting that no runtime overrides. */
const fixed = <Value>(value: Value): RuntimeSetting<Value> => ({ key: '', default: value });
const WHY = '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n';

interface BenchOptions {
  readonly format?: string;
  readonly filter?: AccessLogFilter;
  readonly clock?: ManualClock;
  readonly ports?: readonly number[];
  readonly cluster?: ClusterOverrides;
  readonly settings?: Partial<HttpConnectionManagerSettings>;
  readonly routes?: readonly RouteSnapshot[];
}

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  client(): WireClient;
  /** Ends the data plane, which flushes its logs, and reads the entries. */
  entries(): Promise<string[]>;
}

interface LogPlace {
  readonly settings: readonly AccessLogSettings[];
  read(): string;
}

function logTo(t: TestContext, format: string, filter: AccessLogFilter | null = null): LogPlace {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-access-log-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'access.log');
  const content = { kind: 'text', segments: parseFormat(format).segments! } as const;
  return {
    settings: [{ destination: { kind: 'file', path: file }, format: { content, omitEmptyValues: false }, filter }],
    read: () => readFileSync(file, 'latin1'),
  };
}

function newBench(t: TestContext, proxy: DataPlaneFixture, port: number, log: LogPlace, clock?: ManualClock): Bench {
  const clients: WireClient[] = [];
  const close = async (): Promise<void> => {
    for (const client of clients) client.close();
    const closed = proxy.close();
    clock?.turn(1000);
    await closed;
  };
  t.after(close);
  return {
    proxy,
    port,
    client(): WireClient {
      const client = new WireClient(port);
      clients.push(client);
      return client;
    },
    async entries(): Promise<string[]> {
      await close();
      return log.read().split('\n').slice(0, -1);
    },
  };
}

async function bench(t: TestContext, options: BenchOptions = {}): Promise<Bench> {
  const { clock } = options;
  const proxy = new DataPlaneFixture(clock === undefined ? {} : { clock });
  proxy.cluster('web', (options.ports ?? []).map(loopback), options.cluster);
  const log = logTo(t, options.format ?? WHY, options.filter);
  const routes = options.routes ?? [directRoute('/direct', 200, 'direct'), routeTo('web')];
  const port = await proxy.http(routes, { accessLogs: log.settings, ...options.settings });
  return newBench(t, proxy, port, log, clock);
}

async function upstreamOf(t: TestContext, upstream: Promise<WireUpstream>): Promise<number> {
  const started = await upstream;
  t.after(() => started.close());
  return started.port;
}

describe('an entry of a request', () => {
  test('tells of both ends, both heads and the bytes between', async (t) => {
    const upstream = await upstreamOf(t, WireUpstream.answering(OK));
    const format =
      '%REQ(:METHOD)% %REQ(:PATH)% %PROTOCOL% %REQ(:AUTHORITY)% %REQ(USER-AGENT)% %RESP(X-KIND)% ' +
      '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %BYTES_RECEIVED% %BYTES_SENT% ' +
      '%UPSTREAM_HOST% %UPSTREAM_CLUSTER% %ROUTE_NAME% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %ACCESS_LOG_TYPE%|' +
      '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% %DOWNSTREAM_REMOTE_PORT% %DOWNSTREAM_LOCAL_PORT% ' +
      '%CONNECTION_ID% %UPSTREAM_LOCAL_ADDRESS%\n';
    const routes = [{ ...routeTo('web'), name: 'all' }];
    const { client, entries, port } = await bench(t, { ports: [upstream], format, routes });
    const wire = client();
    const post = 'POST /b HTTP/1.1\r\nhost: web.test\r\ncontent-length: 5\r\n\r\nhello';
    await wire.write(GET).response();
    await wire.write(post).response();
    const localPort = (wire.socket.address() as { port: number }).port;
    const [first, second] = await entries();
    const ends = `127\\.0\\.0\\.1 ${localPort} ${port} (\\d+) 127\\.0\\.0\\.1:\\d+$`;
    assert.match(
      first!,
      new RegExp(
        `^GET /a\\?b=1 HTTP/1\\.1 web\\.test probe fine 200 - via_upstream 0 2 127\\.0\\.0\\.1:${upstream} web all 1 DownstreamEnd\\|${ends}`,
      ),
    );
    assert.match(second!, new RegExp(`^POST /b HTTP/1\\.1 web\\.test - fine 200 - via_upstream 5 2 .*\\|${ends}`));
    assert.equal(first!.split(' ').at(-2), second!.split(' ').at(-2), 'one connection, one identifier');
  });

  test('tells when things happened', async (t) => {
    const clock = new ManualClock();
    let received = '';
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', (chunk: Buffer) => {
        received += chunk;
      });
    });
    t.after(() => upstream.close());
    const format =
      '%START_TIME% %DURATION% %REQUEST_DURATION% %REQUEST_TX_DURATION% %RESPONSE_DURATION% %RESPONSE_TX_DURATION%\n';
    const { client, entries } = await bench(t, { clock, ports: [upstream.port], format });
    const wire = client();
    wire.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\na');
    await eventually(() => received.endsWith('a'), 'the first byte at the upstream');
    clock.turn(100);
    wire.write('b');
    await eventually(() => received.endsWith('b'), 'the last byte at the upstream');
    clock.turn(200);
    upstream.sockets[0]!.write(OK.slice(0, -1));
    await wire.until('\r\n\r\no');
    clock.turn(400);
    upstream.sockets[0]!.write(OK.slice(-1));
    await wire.until('k');
    assert.deepEqual(await entries(), ['2026-01-01T00:00:01.000Z 700 100 100 300 400']);
  });

  test('knows the trailers that the client was sent', async (t) => {
    const chunked =
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7f\r\nx-late: 1\r\n\r\n';
    const upstream = await upstreamOf(t, WireUpstream.answering(chunked));
    const format = '%TRAILER(X-SUM)% %TRAILER(x-none?X-Late)% %TRAILER(x-none)% %RESPONSE_TRAILERS_BYTES%\n';
    const seen: string[] = [];
    for (const enableTrailers of [true, false]) {
      const options = { ports: [upstream], format, cluster: { enableTrailers: true }, settings: { enableTrailers } };
      const { client, entries } = await bench(t, options);
      await client()
        .write(GET)
        .until(/\r\n0\r\n(?:[^\r]+\r\n)*\r\n/);
      seen.push(...(await entries()));
    }
    assert.deepEqual(seen, ['7f 1 - 22', '- - - 0']);
  });

  test('keeps a client from making up entries', async (t) => {
    const upstream = await upstreamOf(t, WireUpstream.answering(OK));
    const { client, entries } = await bench(t, { ports: [upstream], format: '"%REQ(x-evil)%"\n' });
    await client().write('GET / HTTP/1.1\r\nhost: x\r\nx-evil: a" 200\\\t"b\r\n\r\n').response();
    assert.deepEqual(await entries(), ['"a\\x22 200\\x5C\\x09\\x22b"']);
  });

  test('of a request that goes nowhere has the headers that it would have gone on with', async (t) => {
    const format = '%REQ(:PATH)% %REQ(X-REQUEST-ID)% %REQ(X-FORWARDED-FOR)% %REQ(USER-AGENT)%\n';
    const routes = [directRoute('/direct', 418, ''), routeTo('gone', { prefix: '/gone' })];
    const settings = { useRemoteAddress: true, generateRequestId: true };
    const { client, entries } = await bench(t, { routes, format, settings });
    const targets = ['/direct', '/gone', '/nowhere'];
    for (const target of targets) await client().write(GET.replace('/a', target)).response();
    const told = await entries();
    targets.forEach((target, index) => {
      assert.match(told[index]!, new RegExp(`^${target}\\?b=1 [0-9a-f-]{36} [0-9.]+ probe$`));
    });
  });

  test('of a request that is answered without an upstream knows its headers', async (t) => {
    const format =
      '%REQ(:METHOD)% %REQ(:AUTHORITY)%%REQ(:PATH)% %REQ(user-agent)% %UPSTREAM_HOST% %LOCAL_REPLY_BODY%\n';
    const { client, entries } = await bench(t, { format });
    await client().write(GET.replace('/a', '/direct')).response();
    assert.deepEqual(await entries(), ['GET web.test/direct?b=1 probe - direct']);
  });

  test('is one for each of several logs, and JSON ends with its line', async (t) => {
    const first = logTo(t, '%RESPONSE_CODE%\n');
    const second = logTo(t, '');
    const json: AccessLogSettings = {
      ...second.settings[0]!,
      format: {
        content: {
          kind: 'json',
          root: {
            kind: 'object',
            entries: [['code', { kind: 'text', segments: parseFormat('%RESPONSE_CODE%').segments! }]],
          },
          isTyped: true,
        },
        omitEmptyValues: false,
      },
    };
    const { client, entries } = await bench(t, { settings: { accessLogs: [...first.settings, json] } });
    const wire = client();
    for (let count = 0; count < 2; count++) await wire.write(GET.replace('/a', '/direct')).response();
    await entries().catch(() => {});
    assert.equal(first.read(), '200\n200\n');
    assert.equal(second.read(), '{"code":200}\n{"code":200}\n');
  });
});

describe('why a request ended as it did', () => {
  test('no route, no cluster, a direct response', async (t) => {
    const routes = [directRoute('/direct', 418, ''), routeTo('gone', { prefix: '/gone' })];
    const { client, entries } = await bench(t, { routes });
    for (const target of ['/direct', '/gone', '/nowhere']) await client().write(GET.replace('/a', target)).response();
    assert.deepEqual(await entries(), ['418 - direct_response', '503 NC cluster_not_found', '404 NR route_not_found']);
  });

  test('no host', async (t) => {
    const { client, entries } = await bench(t);
    await client().write(GET).response();
    assert.deepEqual(await entries(), ['503 UH no_healthy_upstream']);
  });

  test('the upstream refuses the connection', async (t) => {
    const format = `%UPSTREAM_TRANSPORT_FAILURE_REASON%|%UPSTREAM_HOST%|%REQ(:PATH)%|${WHY}`;
    const port = await unusedPort();
    const { client, entries } = await bench(t, { ports: [port], format });
    await client().write(GET).response();
    const reason = 'delayed connect error: 111';
    assert.deepEqual(await entries(), [
      `${reason}|127.0.0.1:${port}|/a?b=1|503 UF upstream_reset_before_response_started{remote_connection_failure,${reason.replaceAll(' ', '_')}}`,
    ]);
  });

  test('the upstream takes too long to connect', async (t) => {
    const clock = new ManualClock();
    // A connection that nobody completes: the address is kept for documentation.
    const proxy = new DataPlaneFixture({ clock });
    proxy.cluster('web', [{ kind: 'ip', ip: '192.0.2.1', port: 9 }], { connectTimeoutMs: 100 });
    const log = logTo(t, WHY);
    const port = await proxy.http([routeTo('web')], { accessLogs: log.settings });
    const { client, entries } = newBench(t, proxy, port, log, clock);
    const wire = client().write(GET);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_pending_active') === 1, 'the request to wait');
    clock.turn(1000);
    const { status } = await wire.response();
    assert.equal(status, 503);
    assert.match(
      (await entries())[0]!,
      /^503 UF upstream_reset_before_response_started\{(connection_timeout|.*connection_failure.*)\}$/,
    );
  });

  test('the upstream closes before its response', async (t) => {
    const upstream = await upstreamOf(
      t,
      WireUpstream.start((socket) => socket.once('data', () => socket.destroy())),
    );
    const { client, entries } = await bench(t, { ports: [upstream] });
    await client().write(GET).response();
    assert.deepEqual(await entries(), ['503 UC upstream_reset_before_response_started{connection_termination}']);
  });

  test('the upstream closes within its response', async (t) => {
    const upstream = await upstreamOf(
      t,
      WireUpstream.start((socket) =>
        socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc')),
      ),
    );
    const { client, entries } = await bench(t, { ports: [upstream], format: `%BYTES_SENT% ${WHY}` });
    const wire = client().write(GET);
    await wire.rest();
    assert.deepEqual(await entries(), ['3 200 UC upstream_reset_after_response_started{connection_termination}']);
  });

  test('the upstream breaks the protocol', async (t) => {
    const upstream = await upstreamOf(t, WireUpstream.answering('HTTP/9 what\r\n\r\n'));
    const { client, entries } = await bench(t, { ports: [upstream] });
    await client().write(GET).response();
    const [entry] = await entries();
    assert.match(entry!, /^502 UPE upstream_reset_before_response_started\{protocol_error,\w+\}$/);
  });

  test('a circuit breaker is open', async (t) => {
    const limits = { maxConnections: 1, maxPendingRequests: 0, maxRequests: 1, maxRetries: 0 };
    const cluster = { circuitBreakers: { default: limits, high: limits } };
    const upstream = await upstreamOf(t, WireUpstream.answering(OK));
    const { client, entries } = await bench(t, { ports: [upstream], cluster });
    await client().write(GET).response();
    assert.deepEqual(await entries(), ['503 UO upstream_reset_before_response_started{overflow}']);
  });

  test('the route, the stream or the whole request takes too long', async (t) => {
    const clock = new ManualClock();
    const upstream = await upstreamOf(
      t,
      WireUpstream.start(() => {}),
    );
    const settings = { streamIdleTimeoutMs: 500, requestTimeoutMs: 300 };
    const routes = [routeTo('web', { prefix: '/slow', timeoutMs: 100 }), routeTo('web', { timeoutMs: 0 })];
    const { proxy, client, entries } = await bench(t, { clock, ports: [upstream], settings, routes });
    const ask = async (request: string): Promise<void> => {
      const before = proxy.httpStat('downstream_rq_total');
      const wire = client().write(request);
      await eventually(() => proxy.httpStat('downstream_rq_total') > before, 'the request');
      for (let turns = 0; turns < 10 && !wire.isEnded; turns++) {
        clock.turn(100);
        await new Promise(setImmediate);
      }
      await wire.until('\r\n\r\n');
    };
    await ask(GET.replace('/a', '/slow'));
    await ask(GET);
    await ask('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n');
    assert.deepEqual(await entries(), [
      '504 UT response_timeout',
      '504 SI stream_idle_timeout',
      '408 - request_overall_timeout',
    ]);
  });

  test('the client goes away', async (t) => {
    const upstream = await upstreamOf(
      t,
      WireUpstream.start(() => {}),
    );
    const { proxy, client, entries } = await bench(t, { ports: [upstream] });
    const wire = client().write(GET);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the request at the upstream');
    wire.close();
    await eventually(() => proxy.httpStat('downstream_rq_rx_reset') === 1, 'the reset');
    assert.deepEqual(await entries(), ['0 DC downstream_remote_disconnect']);
  });

  test('the client breaks the protocol, in the head and in the body', async (t) => {
    const upstream = await upstreamOf(t, WireUpstream.answering(OK));
    const { client, entries } = await bench(t, { ports: [upstream], format: `%PROTOCOL% %REQ(:METHOD)% ${WHY}` });
    await client().write('GET / HTTP/1.1\r\nbroken\r\n\r\n').response();
    await client().write('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n').response();
    const [head, body] = await entries();
    assert.match(head!, /^HTTP\/1\.1 - 400 DPE http1\.codec_error\{\w+\}$/);
    assert.match(body!, /^HTTP\/1\.1 POST 400 DPE http1\.codec_error\{\w+\}$/);
  });

  test('a head that is refused, with the version that it names', async (t) => {
    const upstream = await upstreamOf(t, WireUpstream.answering(OK));
    const { client, entries } = await bench(t, {
      ports: [upstream],
      format: '%PROTOCOL% %RESPONSE_CODE%\n',
      settings: { requestHeadersTimeoutMs: 20 },
    });
    const heads: readonly [head: string, entry: string][] = [
      ['GET / HTTP/1.0\r\nbroken\r\n\r\n', 'HTTP/1.0 400'],
      ['\r\nGET / HTTP/1.0\r\nbroken\r\n\r\n', 'HTTP/1.0 400'],
      ['GET / HTTP/1.0\nbroken\n\n', 'HTTP/1.0 400'],
      ['GET / HTTP/1.0\r\nhost: x\r\n', 'HTTP/1.0 408'],
      ['GET / HTTP/1.0', 'HTTP/1.1 408'],
      ['GET /HTTP/1.0 HTTP/1.1\r\nbroken\r\n\r\n', 'HTTP/1.1 400'],
      ['\n', 'HTTP/1.1 400'],
    ];
    for (const [head] of heads) await client().write(head).response();
    const expected = heads.map(([, entry]) => entry);
    assert.deepEqual(await entries(), expected);
  });

  test('a connection that was reused and lost is tried again, and counted', async (t) => {
    const upstream = await upstreamOf(
      t,
      WireUpstream.start((socket, index) => {
        let requests = 0;
        socket.on('data', () => (++requests === 2 && index === 0 ? socket.destroy() : socket.write(OK)));
      }),
    );
    const { client, entries } = await bench(t, {
      ports: [upstream],
      format: `%UPSTREAM_REQUEST_ATTEMPT_COUNT% ${WHY}`,
    });
    const wire = client();
    await wire.write(GET).response();
    await wire.write(GET).response();
    assert.deepEqual(await entries(), ['1 200 - via_upstream', '2 200 - via_upstream']);
  });
});

describe('a filter', () => {
  const isError: AccessLogFilter = { kind: 'status-code', operator: 'GE', value: fixed(400) };
  const isProbe: AccessLogFilter = {
    kind: 'header',
    header: {
      name: 'user-agent',
      test: { kind: 'exact', value: 'probe', ignoresCase: false },
      isInverted: false,
      treatMissingAsEmpty: false,
    },
  };
  const cases: readonly (readonly [string, AccessLogFilter, readonly string[]])[] = [
    ['by status', isError, ['404 probe', '404 -']],
    ['by status, equal', { kind: 'status-code', operator: 'EQ', value: fixed(200) }, ['200 probe', '200 -']],
    ['by a header', isProbe, ['200 probe', '404 probe']],
    ['by both', { kind: 'and', filters: [isError, isProbe] }, ['404 probe']],
    ['by either', { kind: 'or', filters: [isError, isProbe] }, ['200 probe', '404 probe', '404 -']],
    ['by flags', { kind: 'response-flags', flags: ['NR', 'UH'] }, ['404 probe', '404 -']],
    ['by any flag', { kind: 'response-flags', flags: [] }, ['404 probe', '404 -']],
    ['by a flag that did not happen', { kind: 'response-flags', flags: ['DC'] }, []],
    ['by duration', { kind: 'duration-ms', operator: 'GE', value: fixed(60_000) }, []],
    ['by type', { kind: 'log-type', types: ['DownstreamEnd'], isExcluded: true }, []],
    ['by a share of none', { kind: 'fraction', fraction: fixed({ numerator: 0, denominator: 100 }) }, []],
    [
      'by a share that the draw meets',
      { kind: 'fraction', fraction: fixed({ numerator: 1, denominator: 100 }) },
      ['200 probe', '404 probe', '200 -', '404 -'],
    ],
    ['against health checks', { kind: 'not-health-check' }, ['200 probe', '404 probe', '200 -', '404 -']],
  ];
  for (const [name, filter, expected] of cases) {
    test(`${name} lets pass what it should`, async (t) => {
      const routes = [directRoute('/direct', 200, '')];
      const { client, entries } = await bench(t, { filter, routes, format: '%RESPONSE_CODE% %REQ(user-agent)%\n' });
      const wire = client();
      for (const agent of ['user-agent: probe\r\n', '']) {
        for (const target of ['/direct', '/nowhere']) {
          await wire.write(`GET ${target} HTTP/1.1\r\nhost: x\r\n${agent}\r\n`).response();
        }
      }
      assert.deepEqual(await entries().catch(() => []), expected);
    });
  }
});

describe('an entry of a proxied TCP connection', () => {
  const ENDS =
    '%ACCESS_LOG_TYPE% %BYTES_RECEIVED% %BYTES_SENT% %RESPONSE_FLAGS% %UPSTREAM_CLUSTER% ' +
    '%UPSTREAM_REQUEST_ATTEMPT_COUNT% %CONNECTION_TERMINATION_DETAILS% %UPSTREAM_HOST%\n';

  async function tcpBench(
    t: TestContext,
    options: {
      ports?: readonly number[];
      cluster?: ClusterOverrides;
      settings?: Partial<TcpProxySettings>;
      clock?: ManualClock;
      random?: Random;
    },
    format = ENDS,
  ): Promise<Bench> {
    const { clock, random } = options;
    const proxy = new DataPlaneFixture({
      ...(clock === undefined ? {} : { clock }),
      ...(random === undefined ? {} : { random }),
    });
    proxy.cluster('raw', (options.ports ?? []).map(loopback), options.cluster);
    const log = logTo(t, format);
    const port = await proxy.tcp('raw', { accessLogs: log.settings, ...options.settings });
    return newBench(t, proxy, port, log, clock);
  }

  test('counts the bytes of both directions', async (t) => {
    const port = await upstreamOf(
      t,
      WireUpstream.start((socket) => socket.pipe(socket)),
    );
    const { proxy, client, entries } = await tcpBench(t, { ports: [port] });
    const wire = client().write('hello');
    await wire.bytes(5);
    wire.socket.end();
    await wire.rest();
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end');
    assert.deepEqual(await entries(), [`TcpConnectionEnd 5 5 - raw 1 - 127.0.0.1:${port}`]);
  });

  test('says why there was no upstream', async (t) => {
    const port = await unusedPort();
    const ends: readonly (readonly [Parameters<typeof tcpBench>[1], string])[] = [
      [{}, 'TcpConnectionEnd 0 0 UH raw 1 - -'],
      [{ settings: { clusters: [{ cluster: 'gone', weight: 1, criteria: null }] } }, 'TcpConnectionEnd 0 0 NC - 0 - -'],
      [{ ports: [port], settings: { maxConnectAttempts: 2 } }, `TcpConnectionEnd 0 0 UF,URX raw 2 - 127.0.0.1:${port}`],
    ];
    for (const [options, expected] of ends) {
      const { client, entries } = await tcpBench(t, options);
      await client().rest();
      assert.deepEqual(await entries(), [expected]);
    }
  });

  test('names the maximum duration', async (t) => {
    const clock = new ManualClock();
    const port = await upstreamOf(
      t,
      WireUpstream.start((socket) => socket.write('x')),
    );
    const { client, entries } = await tcpBench(t, { clock, ports: [port], settings: { maxConnectionDurationMs: 500 } });
    const wire = client();
    await wire.bytes(1);
    clock.turn(1000);
    await wire.rest();
    const expected = `TcpConnectionEnd 0 1 DT raw 1 max_connection_duration_reached 127.0.0.1:${port}`;
    assert.deepEqual(await entries(), [expected]);
  });

  test('may be written at the start, with the upstream and from time to time, too', async (t) => {
    const clock = new ManualClock();
    const port = await upstreamOf(
      t,
      WireUpstream.start((socket) => socket.write('x')),
    );
    const { client, entries } = await tcpBench(
      t,
      {
        clock,
        ports: [port],
        settings: { furtherLogEntries: { onStart: true, onConnected: true, intervalMs: 1000 }, idleTimeoutMs: 2500 },
      },
      '%ACCESS_LOG_TYPE% %DURATION% %UPSTREAM_CLUSTER% %BYTES_SENT%\n',
    );
    const wire = client();
    await wire.bytes(1);
    for (let i = 0; i < 3; i++) clock.turn(1000);
    await wire.rest();
    const lines = await entries();
    const types = lines.map((line) => line.split(' ')[0]);
    const wanted = ['TcpConnectionStart', 'TcpUpstreamConnected', 'TcpPeriodic', 'TcpPeriodic', 'TcpConnectionEnd'];
    assert.deepEqual(types, wanted);
    assert.deepEqual(lines.slice(0, 2), ['TcpConnectionStart 0 - 0', 'TcpUpstreamConnected 0 raw 0']);
    for (const [index, line] of lines.slice(2).entries()) {
      const [, duration, ...rest] = line.split(' ');
      assert.deepEqual(rest, ['raw', '1']);
      // A timer may be a tick late.
      const dueMs = [1000, 2000, 2500][index]!;
      assert.ok(Number(duration) >= dueMs && Number(duration) < dueMs + 50, line);
    }
  });

  test('names the cluster that weight has chosen', async (t) => {
    const clusters = [
      { cluster: 'gone', weight: 1, criteria: null },
      { cluster: 'raw', weight: 1, criteria: null },
    ];
    const port = await upstreamOf(
      t,
      WireUpstream.start((socket) => socket.end('x')),
    );
    const { client, entries } = await tcpBench(
      t,
      { ports: [port], settings: { clusters }, random: { u32: () => 1 } },
      '%UPSTREAM_CLUSTER%\n',
    );
    const wire = client();
    await wire.rest();
    wire.close();
    assert.deepEqual(await entries(), ['raw']);
  });

  test('names the idle timeout', async (t) => {
    const clock = new ManualClock();
    const port = await upstreamOf(
      t,
      WireUpstream.start((socket) => socket.write('x')),
    );
    const { client, entries } = await tcpBench(t, { clock, ports: [port], settings: { idleTimeoutMs: 500 } });
    const wire = client();
    await wire.bytes(1);
    clock.turn(1000);
    await wire.rest();
    assert.deepEqual(await entries(), [`TcpConnectionEnd 0 1 - raw 1 tcp_session_idle_timeout 127.0.0.1:${port}`]);
  });
});

describe('an entry of a listener', () => {
  test('is written for each connection, also for one that no filter chain takes', async (t) => {
    const port = await upstreamOf(
      t,
      WireUpstream.start((socket) => socket.pipe(socket)),
    );
    const proxy = new DataPlaneFixture();
    proxy.cluster('raw', [loopback(port)]);
    const log = logTo(t, '%FILTER_CHAIN_NAME% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %DOWNSTREAM_LOCAL_PORT%\n');
    const match = { ...MATCHES_ALL, sourcePrefixRanges: [{ ip: '127.0.0.2', prefixLength: 32 }] };
    const chain = filterChain(tcpProxy('raw'), { name: 'echo', match });
    const [bound] = await proxy.listenWith({ filterChains: [chain], accessLogs: log.settings });
    const { client, entries } = newBench(t, proxy, bound!, log);
    await client().rest();
    const matching = connect({ port: bound!, host: '127.0.0.1', localAddress: '127.0.0.2' });
    matching.end('hello');
    matching.resume();
    await once(matching, 'close');
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end');
    assert.deepEqual(await entries(), [`- NR filter_chain_not_found ${bound}`, `echo - - ${bound}`]);
  });
});

test('files are reopened while requests go on, and nothing is lost', async (t) => {
  const { proxy, client, entries } = await bench(t, { format: '%REQ(:path)%\n' });
  const wire = client();
  for (let number = 0; number < 50; number++) {
    await wire.write(`GET /direct/${number} HTTP/1.1\r\nhost: x\r\n\r\n`).response();
    if (number % 10 === 0) proxy.dataPlane.reopenAccessLogs();
  }
  assert.deepEqual(
    await entries(),
    Array.from({ length: 50 }, (_, number) => `/direct/${number}`),
  );
});

test('times of requests and connections go into histograms', async (t) => {
  const clock = new ManualClock();
  const answers: (() => void)[] = [];
  const upstream = await upstreamOf(
    t,
    WireUpstream.start((socket) => socket.on('data', () => answers.push(() => void socket.write(OK)))),
  );
  const { proxy, client } = await bench(t, { clock, ports: [upstream] });
  const wire = client();
  for (const elapsedMs of [30, 50]) {
    wire.write(GET);
    await eventually(() => answers.length === 1, 'the request at the upstream');
    clock.turn(elapsedMs);
    answers.shift()!();
    await wire.response();
  }
  clock.turn(20);
  wire.close();
  await eventually(() => proxy.listenerStat('downstream_cx_active') === 0, 'the end');
  assert.deepEqual(proxy.httpSamples('downstream_rq_time'), [30, 50]);
  assert.deepEqual(proxy.clusterSamples('web', 'upstream_rq_time'), [30, 50]);
  assert.deepEqual(proxy.httpSamples('downstream_cx_length_ms'), [100]);
  assert.deepEqual(proxy.listenerSamples('downstream_cx_length_ms'), [100]);
  assert.deepEqual(proxy.clusterSamples('web', 'upstream_cx_connect_ms'), [0]);
  assert.deepEqual(proxy.clusterSamples('web', 'upstream_cx_length_ms'), []);
  assert.deepEqual(proxy.clusterSamples('web', 'upstream_rq_per_cx'), []);
  const closed = proxy.close();
  clock.turn(1000);
  await closed;
  assert.deepEqual(proxy.clusterSamples('web', 'upstream_cx_length_ms').length, 1);
  assert.deepEqual(proxy.clusterSamples('web', 'upstream_rq_per_cx'), [2]);
});
