// ORIGINAL_DST in the real program: hosts that requests and connections name, made when they are wanted and taken back when
// they are not.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import {
  httpFilter,
  type Json,
  type JsonObject,
  listenerWith,
  ROUTER,
  socketAddress,
  tcpFilter,
} from '../support/bootstrap.ts';
import { startEchoUpstream } from '../support/echo-upstream.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const LISTENER_FILTERS = 'type.googleapis.com/envoy.extensions.filters.listener';
const PROXY_PROTOCOL: JsonObject = {
  name: 'envoy.filters.listener.proxy_protocol',
  typed_config: {
    '@type': `${LISTENER_FILTERS}.proxy_protocol.v3.ProxyProtocol`,
    allow_requests_without_proxy_protocol: true,
  },
};
const BY_HEADER: JsonObject = { use_http_header: true };
const LONG: JsonObject = { original_dst_lb_config: BY_HEADER, cleanup_interval: '3600s' };

interface Options {
  readonly cluster?: JsonObject;
  readonly route?: JsonObject;
  readonly routes?: readonly Json[];
  readonly filter?: Json;
  /** Before the router. */
  readonly httpFilters?: readonly Json[];
  readonly listener?: JsonObject;
  readonly runtime?: JsonObject;
  readonly args?: readonly string[];
  readonly clusters?: readonly Json[];
}

async function start(options: Options = {}): Promise<{ weir: WeirProcess; port: number }> {
  const routes = options.routes ?? [{ match: { prefix: '/' }, route: { cluster: 'any', ...options.route } }];
  const virtual_hosts = [{ name: 'all', domains: ['*'], routes }];
  const access_log = [
    {
      name: 'envoy.access_loggers.stdout',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
        log_format: { text_format_source: { inline_string: 'flags=%RESPONSE_FLAGS% host=%UPSTREAM_HOST%\n' } },
      },
    },
  ];
  const http = httpFilter({
    route_config: { virtual_hosts },
    http_filters: [...(options.httpFilters ?? []), ROUTER],
    access_log,
  });
  const any = { name: 'any', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED', ...(options.cluster ?? LONG) };
  const weir = await startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: {
        listeners: [
          listenerWith([options.filter ?? http], { address: socketAddress('127.0.0.1', 0), ...options.listener }),
        ],
        clusters: [any, ...(options.clusters ?? [])],
      },
      ...(options.runtime && { layered_runtime: { layers: [{ name: 'test', static_layer: options.runtime }] } }),
    }),
    ...(options.args && { args: options.args }),
  });
  const { port } = (await weir.listeners()).get('main')!;
  return { weir, port };
}

function get(...hosts: readonly string[]): string {
  return `GET / HTTP/1.1\r\nhost: x\r\n${hosts.map((host) => `x-proxy-original-dst-host: ${host}\r\n`).join('')}\r\n`;
}

/** One request on a connection of its own. */
async function ask(port: number, request: string): Promise<{ status: number; body: string; head: string }> {
  const client = new WireClient(port).write(request);
  const answer = await client.response();
  client.close();
  return answer;
}

async function membersOf(weir: WeirProcess): Promise<string[]> {
  const lines = (await weir.admin('/clusters')).split('\n');
  return lines.flatMap((line) => /^any::(.+)::hostname::/.exec(line)?.[1] ?? []).toSorted();
}

describe('ORIGINAL_DST by metadata', () => {
  it('sends a request where a filter has said, before its header', async () => {
    await using said = await startEchoUpstream('said');
    await using named = await startEchoUpstream('named');
    const metadata_key = { key: 'where', path: [{ key: 'to' }] };
    const rule = { header: 'x-to', on_header_present: { metadata_namespace: 'where', key: 'to' } };
    const { weir, port } = await start({
      cluster: { ...LONG, original_dst_lb_config: { ...BY_HEADER, metadata_key } },
      httpFilters: [
        {
          name: 'envoy.filters.http.header_to_metadata',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config',
            request_rules: [rule],
          },
        },
      ],
    });
    await using _ = weir;
    const asking = async (to: string): Promise<string> => {
      const request = get(`127.0.0.1:${named.port}`).replace('host: x', `host: x\r\nx-to: ${to}`);
      return JSON.parse((await ask(port, request)).body).upstream;
    };
    assert.equal(await asking(`127.0.0.1:${said.port}`), 'said');
    assert.equal(await asking('nowhere'), 'named');
    await weir.untilStat('cluster.any.original_dst_host_invalid', 1);
  });
});

describe('ORIGINAL_DST by header', () => {
  it('sends each request where its header says, over two workers that know the same hosts', async () => {
    await using first = await startEchoUpstream('first');
    await using second = await startEchoUpstream('second');
    const { weir, port } = await start({ args: ['--concurrency', '2'] });
    await using _ = weir;
    const upstreams = [first, second];
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_entry, index) => ask(port, get(`127.0.0.1:${upstreams[index % 2]!.port}`))),
    );
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    for (const [index, { body }] of answers.entries()) {
      assert.equal(JSON.parse(body).upstream, index % 2 === 0 ? 'first' : 'second');
    }
    const addresses = upstreams.map((upstream) => `127.0.0.1:${upstream.port}`);
    assert.deepEqual(await membersOf(weir), addresses.toSorted());
    assert.equal(await weir.stat('cluster.any.membership_total'), 2);
    assert.equal(await weir.stat('cluster.any.membership_change'), 2);
    const listing = await weir.admin('/clusters');
    assert.match(listing, new RegExp(`^any::${addresses[0]}::hostname::any${addresses[0]}$`, 'm'));
    // Counted for the one host of all workers.
    assert.match(listing, new RegExp(`^any::${addresses[0]}::rq_total::20$`, 'm'));
  });

  it('closes the connections of a host at rest where no more hosts may have any', async () => {
    await using first = await startEchoUpstream('first');
    await using second = await startEchoUpstream('second');
    const circuit_breakers = { thresholds: [{ max_connection_pools: 1 }] };
    const { weir, port } = await start({ cluster: { ...LONG, circuit_breakers }, args: ['--concurrency', '1'] });
    await using _ = weir;
    for (const upstream of [first, second, first]) {
      assert.equal((await ask(port, get(`127.0.0.1:${upstream.port}`))).status, 200);
    }
    assert.equal(await weir.stat('cluster.any.upstream_cx_pool_overflow'), 0);
    assert.equal(await weir.stat('cluster.any.upstream_cx_total'), 3);
  });

  it('goes by the first of several headers, and by either spelling of its name', async () => {
    await using upstream = await startEchoUpstream('first');
    const { weir, port } = await start();
    await using _ = weir;
    const there = `127.0.0.1:${upstream.port}`;
    assert.equal((await ask(port, get(there, '127.0.0.1:1'))).status, 200);
    const alias = `GET / HTTP/1.1\r\nhost: x\r\nX-Envoy-Original-Dst-Host: ${there}\r\n\r\n`;
    assert.equal((await ask(port, alias)).status, 200);
    assert.deepEqual(await membersOf(weir), [there]);
  });

  it('answers 503 to what names no host, and counts names that are none', async () => {
    const { weir, port } = await start();
    await using _ = weir;
    assert.equal((await ask(port, get())).status, 503);
    assert.equal(await weir.stat('cluster.any.original_dst_host_invalid'), 0);
    const bad = [
      'localhost:80',
      '127.0.0.1',
      '127.0.0.1:0',
      '127.0.0.1:65536',
      '::1:80',
      '[127.0.0.1]:80',
      '[fe80::1%lo]:80',
    ];
    for (const host of [...bad, '127.0.0.1:80,127.0.0.1:81', '0x7f.1:80', '127.1:80', '']) {
      assert.equal((await ask(port, get(host))).status, 503, host);
    }
    assert.equal(await weir.stat('cluster.any.original_dst_host_invalid'), bad.length + 4);
    assert.equal(await weir.stat('cluster.any.upstream_cx_none_healthy'), bad.length + 5);
    assert.equal(await weir.stat('cluster.any.membership_total'), 0);
    assert.match((await weir.stop()).stdout, /flags=UH host=-/);
  });

  it('ignores the header unless it is told to go by it', async () => {
    await using upstream = await startEchoUpstream('first');
    const { weir, port } = await start({ cluster: {} });
    await using _ = weir;
    assert.equal((await ask(port, get(`127.0.0.1:${upstream.port}`))).status, 503);
    assert.equal(await weir.stat('cluster.any.original_dst_host_invalid'), 0);
  });

  it('takes another header, and another port', async () => {
    await using upstream = await startEchoUpstream('first');
    const original_dst_lb_config = {
      use_http_header: true,
      http_header_name: 'X-Where',
      upstream_port_override: upstream.port,
    };
    const { weir, port } = await start({ cluster: { original_dst_lb_config } });
    await using _ = weir;
    assert.equal((await ask(port, get('127.0.0.1:1'))).status, 503);
    assert.equal((await ask(port, 'GET / HTTP/1.1\r\nhost: x\r\nx-where: 127.0.0.1:1\r\n\r\n')).status, 200);
    assert.deepEqual(await membersOf(weir), [`127.0.0.1:${upstream.port}`]);
  });

  it('has one host for all spellings of an address', async (t) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'));
    });
    server.listen(0, '::');
    t.after(() => server.close());
    await once(server, 'listening');
    const there = (server.address() as AddressInfo).port;
    const { weir, port } = await start();
    await using _ = weir;
    const ipv6 = [`[::1]:${there}`, `[0:0:0:0:0:0:0:1]:${there}`];
    for (const host of [...ipv6, `[::ffff:127.0.0.1]:${there}`, `127.0.0.1:${there}`]) {
      assert.equal((await ask(port, get(host))).status, 200, host);
    }
    assert.deepEqual(await membersOf(weir), [`127.0.0.1:${there}`, `[::1]:${there}`]);
  });

  it('keeps a body that comes before the host does', async () => {
    await using upstream = await startEchoUpstream('first');
    const { weir, port } = await start();
    await using _ = weir;
    const body = 'b'.repeat(200_000);
    const head = `POST / HTTP/1.1\r\nhost: x\r\nx-proxy-original-dst-host: 127.0.0.1:${upstream.port}\r\n`;
    const answer = await ask(port, `${head}content-length: ${body.length}\r\n\r\n${body}`);
    assert.deepEqual([answer.status, JSON.parse(answer.body).bodyBytes], [200, body.length]);
  });

  it('tries again where it was sent, and nowhere else', async () => {
    const closed = await unusedPort();
    const { weir, port } = await start({ route: { retry_policy: { retry_on: 'connect-failure', num_retries: 2 } } });
    await using _ = weir;
    assert.equal((await ask(port, get(`127.0.0.1:${closed}`))).status, 503);
    assert.equal(await weir.stat('cluster.any.upstream_rq_retry'), 2);
    assert.deepEqual(await membersOf(weir), [`127.0.0.1:${closed}`]);
  });

  it('sends a copy of a request where the request says', async () => {
    await using first = await startEchoUpstream('first');
    await using copies = await startEchoUpstream('copies');
    const route = { cluster: 'web', request_mirror_policies: [{ cluster: 'any' }] };
    const endpoint = { endpoint: { address: socketAddress('127.0.0.1', first.port) } };
    const web = { name: 'web', load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] } };
    const { weir, port } = await start({ routes: [{ match: { prefix: '/' }, route }], clusters: [web] });
    await using _ = weir;
    assert.equal(JSON.parse((await ask(port, get(`127.0.0.1:${copies.port}`))).body).upstream, 'first');
    await weir.untilStat('cluster.any.upstream_rq_completed', 1);
    assert.equal(copies.requests, 1);
  });

  it('ends a CONNECT where it says', async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.on('data', (bytes) => socket.write(bytes)));
    t.after(() => upstream.close());
    const route = { cluster: 'any', upgrade_configs: [{ upgrade_type: 'CONNECT', connect_config: {} }] };
    const upgrade_configs = [{ upgrade_type: 'CONNECT' }];
    const virtual_hosts = [{ name: 'all', domains: ['*'], routes: [{ match: { connect_matcher: {} }, route }] }];
    const { weir, port } = await start({ filter: httpFilter({ route_config: { virtual_hosts }, upgrade_configs }) });
    await using _ = weir;
    const header = `x-proxy-original-dst-host: 127.0.0.1:${upstream.port}`;
    const client = new WireClient(port).write(`CONNECT somewhere:1 HTTP/1.1\r\nhost: somewhere:1\r\n${header}\r\n\r\n`);
    await client.until('\r\n\r\n');
    assert.equal((await client.write('ping').bytes(4)).toString(), 'ping');
    client.close();
  });
});

describe('hosts on demand', () => {
  it('go when nobody has used them, and come again', async () => {
    await using upstream = await startEchoUpstream('first');
    const cluster = { original_dst_lb_config: BY_HEADER, cleanup_interval: '0.05s', max_requests_per_connection: 1 };
    const { weir, port } = await start({ cluster });
    await using _ = weir;
    for (let round = 0; round < 5; round++) {
      assert.equal((await ask(port, get(`127.0.0.1:${upstream.port}`))).status, 200);
      await weir.untilStat('cluster.any.membership_total', 0);
    }
    assert.deepEqual(await membersOf(weir), []);
    assert.equal(await weir.stat('cluster.any.upstream_rq_total'), 5);
  });

  it('stay while a request is with them, and while a connection is kept for the next', async (t) => {
    const upstream = await WireUpstream.start(() => {});
    t.after(() => upstream.close());
    const cluster = { original_dst_lb_config: BY_HEADER, cleanup_interval: '0.02s' };
    const { weir, port } = await start({ cluster });
    await using _ = weir;
    const there = `127.0.0.1:${upstream.port}`;
    const client = new WireClient(port).write(get(there));
    await untilEqual(1, () => upstream.sockets.length, 'connections of the upstream');
    const [socket] = upstream.sockets as [Socket];
    await once(socket, 'data');
    // Another host comes and goes meanwhile, so that there have been cleanups: one that nobody can connect to.
    const outlive = async (): Promise<void> => {
      assert.equal((await ask(port, get(`127.0.0.1:${await unusedPort()}`))).status, 503);
      await weir.untilStat('cluster.any.membership_total', 1);
    };
    await outlive();
    assert.deepEqual(await membersOf(weir), [there]);
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    assert.equal((await client.response()).body, 'ok');
    await outlive();
    assert.deepEqual(await membersOf(weir), [there]);
    socket.destroy();
    await weir.untilStat('cluster.any.membership_total', 0);
    client.close();
  });

  it('are limited in number, and what is beyond is answered and counted', async () => {
    await using first = await startEchoUpstream('first');
    await using second = await startEchoUpstream('second');
    const { weir, port } = await start({ runtime: { 'upstream.original_dst.max_hosts': 1 } });
    await using _ = weir;
    assert.equal((await ask(port, get(`127.0.0.1:${first.port}`))).status, 200);
    for (let n = 0; n < 3; n++) assert.equal((await ask(port, get(`127.0.0.1:${second.port}`))).status, 503);
    assert.equal((await ask(port, get(`127.0.0.1:${first.port}`))).status, 200);
    assert.equal(await weir.stat('cluster.any.original_dst_host_overflow'), 3);
    assert.equal(await weir.stat('cluster.any.membership_total'), 1);
    const { stdout, stderr } = await weir.stop();
    assert.match(stdout, /flags=UO host=-/);
    assert.equal(stderr.match(/makes no more on demand/g)?.length, 1);
  });

  it('leave a client that goes before its host has come', async () => {
    await using upstream = await startEchoUpstream('first');
    const { weir, port } = await start();
    await using _ = weir;
    const clients = Array.from({ length: 50 }, () => new WireClient(port).write(get(`127.0.0.1:${upstream.port}`)));
    for (const client of clients) client.close();
    assert.equal((await ask(port, get(`127.0.0.1:${upstream.port}`))).status, 200);
    await weir.untilStat('listener.127.0.0.1_0.downstream_cx_active', 0);
    assert.equal(await weir.stat('cluster.any.circuit_breakers.default.rq_pending_open'), 0);
  });
});

describe('a host on demand that is not healthy', () => {
  it('gets nothing while it is ejected, and is kept over cleanups; others are served', async (t) => {
    const upstream = await WireUpstream.answering('HTTP/1.1 500 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    t.after(() => upstream.close());
    await using other = await startEchoUpstream('other');
    const cluster = {
      original_dst_lb_config: BY_HEADER,
      cleanup_interval: '0.02s',
      max_requests_per_connection: 1,
      outlier_detection: { consecutive_5xx: 2, base_ejection_time: '3600s', max_ejection_time: '3600s' },
    };
    const { weir, port } = await start({ cluster });
    await using _ = weir;
    const there = `127.0.0.1:${upstream.port}`;
    // The host may go between the two; then its row begins anew.
    let failed = 0;
    while ((await weir.stat('cluster.any.outlier_detection.ejections_active')) === 0) {
      const { status } = await ask(port, get(there));
      failed += status === 500 ? 1 : 0;
      assert.ok(status === 500 || status === 503, String(status));
    }
    assert.equal(upstream.heads.length, failed);
    for (let round = 0; round < 3; round += 1) {
      assert.equal((await ask(port, get(there))).status, 503);
      assert.equal((await ask(port, get(`127.0.0.1:${other.port}`))).status, 200);
      // There has been a cleanup.
      await weir.untilStat('cluster.any.membership_total', 1);
    }
    assert.deepEqual(await membersOf(weir), [there]);
    assert.equal(upstream.heads.length, failed);
    assert.match((await weir.stop()).stdout, /flags=UH host=-/);
  });

  it('gets nothing while its checks fail, and is served again when they pass', async (t) => {
    let isWell = true;
    let requests = 0;
    const server = createHttpServer((request, response) => {
      if (request.url === '/health') response.writeHead(isWell ? 200 : 503);
      else requests += 1;
      response.end();
    });
    server.listen(0, '127.0.0.1');
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server, 'listening');
    const there = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const check = {
      timeout: '10s',
      interval: '0.05s',
      no_traffic_interval: '0.05s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      http_health_check: { path: '/health' },
    };
    const { weir, port } = await start({ cluster: { ...LONG, health_checks: [check] }, args: ['--concurrency', '2'] });
    await using _ = weir;
    // Who has named it does not wait for a check.
    assert.equal((await ask(port, get(there))).status, 200);
    isWell = false;
    await weir.untilStat('cluster.any.membership_healthy', 0);
    for (let round = 0; round < 8; round += 1) assert.equal((await ask(port, get(there))).status, 503);
    assert.equal(requests, 1);
    isWell = true;
    await weir.untilStat('cluster.any.membership_healthy', 1);
    assert.equal((await ask(port, get(there))).status, 200);
    assert.equal(await weir.stat('cluster.any.upstream_cx_none_healthy'), 8);
  });
});

describe('ORIGINAL_DST by the destination of a connection', () => {
  /** Says to everybody who it is before it hears anything. */
  async function greeter(t: TestContext, name: string): Promise<WireUpstream> {
    const upstream = await WireUpstream.start((socket) => socket.end(name));
    t.after(() => upstream.close());
    return upstream;
  }

  it('connects where a PROXY header says', async (t) => {
    const upstreams = [await greeter(t, 'first'), await greeter(t, 'second')];
    const { weir, port } = await start({
      filter: tcpFilter({ cluster: 'any' }),
      listener: { listener_filters: [PROXY_PROTOCOL] },
    });
    await using _ = weir;
    for (const [index, upstream] of upstreams.entries()) {
      const client = new WireClient(port).write(`PROXY TCP4 10.0.0.1 127.0.0.1 1000 ${upstream.port}\r\n`);
      assert.equal(await client.rest(), ['first', 'second'][index]);
    }
    assert.equal((await membersOf(weir)).length, 2);
  });

  it('serves a request whose header is of no use where its connection meant to go', async () => {
    await using upstream = await startEchoUpstream('first');
    const { weir, port } = await start({ listener: { listener_filters: [PROXY_PROTOCOL] } });
    await using _ = weir;
    const proxied = `PROXY TCP4 10.0.0.1 127.0.0.1 1000 ${upstream.port}\r\n`;
    assert.equal((await ask(port, proxied + get('nonsense'))).status, 200);
    assert.equal(await weir.stat('cluster.any.original_dst_host_invalid'), 1);
  });

  it('takes its own address for no destination', async () => {
    const filter: JsonObject = {
      name: 'envoy.filters.listener.original_dst',
      typed_config: { '@type': `${LISTENER_FILTERS}.original_dst.v3.OriginalDst` },
    };
    const { weir, port } = await start({
      filter: tcpFilter({ cluster: 'any' }),
      listener: { listener_filters: [filter] },
    });
    await using _ = weir;
    assert.equal(await new WireClient(port).rest(), '');
    assert.equal(await weir.stat('cluster.any.upstream_cx_none_healthy'), 1);
    assert.equal(await weir.stat('cluster.any.upstream_cx_total'), 0);
  });
});
