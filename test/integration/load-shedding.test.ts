// Requests that a cluster turns away before a host is chosen, through the real program: what the client gets, and what
// the books and the access log say.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assigned, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const REQUESTS = 8;

interface Case {
  readonly policy: JsonObject;
  readonly layer: JsonObject;
  readonly body: string;
  readonly header: string;
  readonly maintained: number;
  readonly logged: string;
}

const CASES: Readonly<Record<string, Case>> = {
  'its load assignment has them dropped': {
    policy: {
      drop_overloads: [{ category: 'storm', drop_percentage: { numerator: 1_000_000, denominator: 'MILLION' } }],
    },
    layer: {},
    body: 'drop overload',
    header: 'x-proxy-drop-overload: true',
    maintained: 0,
    logged: 'DO drop_overload',
  },
  'the runtime declares maintenance': {
    policy: {},
    layer: { upstream: { maintenance_mode: { web: 100 } } },
    body: 'maintenance mode',
    header: 'x-proxy-overloaded: true',
    maintained: REQUESTS,
    logged: 'UO maintenance_mode',
  },
};

for (const [name, { policy, layer, body, header, maintained, logged }] of Object.entries(CASES)) {
  test(`a cluster turns requests away when ${name}`, async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.on('data', () => socket.write(OK)));
    t.after(() => upstream.close());
    const endpoint = { endpoint: { address: socketAddress('127.0.0.1', upstream.port) } };
    const cluster = assigned([{ lb_endpoints: [endpoint] }], { policy });
    const accessLog = {
      name: 'out',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
        log_format: { text_format_source: { inline_string: '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n' } },
      },
    };
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
    const filter = httpFilter({
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      access_log: [accessLog],
    });
    await using weir = await startWeir({
      configYaml: JSON.stringify({
        admin: { address: ANY_PORT },
        layered_runtime: { layers: [{ name: 'base', static_layer: layer }] },
        static_resources: { listeners: [listenerWith([filter], { address: ANY_PORT })], clusters: [cluster] },
      }),
      args: ['--concurrency', '2'],
    });
    const { port } = (await weir.listeners()).get('main')!;
    for (let index = 0; index < REQUESTS; index += 1) {
      const client = new WireClient(port);
      const response = await client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n').response();
      client.close();
      assert.equal(response.status, 503);
      assert.equal(response.body, body);
      assert.match(response.head.toLowerCase(), new RegExp(`\r\n${header}\r\n`));
    }
    const prefix = 'cluster.web';
    await weir.untilStat(`${prefix}.upstream_rq_503`, REQUESTS);
    assert.equal(await weir.stat(`${prefix}.upstream_rq_maintenance_mode`), maintained);
    assert.equal(await weir.stat(`${prefix}.upstream_rq_drop_overload`), REQUESTS - maintained);
    assert.equal(await weir.stat(`${prefix}.upstream_cx_total`), 0);
    const { stdout } = await weir.stop();
    assert.deepEqual(
      stdout
        .trim()
        .split('\n')
        .filter((line) => line === logged).length,
      REQUESTS,
    );
  });
}
