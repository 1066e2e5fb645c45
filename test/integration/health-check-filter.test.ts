// The health check filter at work: answers of its own, by the health of clusters, from the upstream and from memory;
// and in the real program, how an operator has checks fail.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { HealthCheckFilterSettings } from '../../src/extensions/filters.http/health_check/settings.ts';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const CHECK = 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n';
const GET = 'GET /direct HTTP/1.1\r\nhost: a\r\n\r\n';
const SETTINGS: HealthCheckFilterSettings = {
  headers: [
    {
      name: ':path',
      test: { kind: 'exact', value: '/healthz', ignoresCase: false },
      isInverted: false,
      treatMissingAsEmpty: false,
    },
  ],
  isPassThrough: false,
  cacheTimeMs: 0,
  clusters: [],
  localCluster: 'edge',
};

async function clientOf(
  t: TestContext,
  proxy: DataPlaneFixture,
  settings: Partial<HealthCheckFilterSettings>,
): Promise<WireClient> {
  const httpFilters = [{ name: 'filters.http.health_check', settings: { ...SETTINGS, ...settings } }];
  const port = await proxy.http([directRoute('/direct', 200, 'direct'), routeTo('web')], { httpFilters });
  const client = new WireClient(port);
  t.after(async () => {
    client.close();
    await proxy.close();
  });
  return client;
}

describe('a health check filter', () => {
  test('answers checks by itself, names its cluster, and leaves other requests alone', async (t) => {
    const proxy = new DataPlaneFixture();
    const client = await clientOf(t, proxy, {});
    const check = await client.write(CHECK).response();
    assert.equal(check.status, 200);
    assert.match(check.head, /x-proxy-upstream-healthchecked-cluster: edge\r\n/);
    const other = await client.write(GET).response();
    assert.equal(other.body, 'direct');
    assert.doesNotMatch(other.head, /x-proxy/);
  });

  test('judges by the health of clusters', async (t) => {
    const proxy = new DataPlaneFixture();
    proxy.cluster('web', [loopback(1), loopback(2)]);
    proxy.cluster('empty', []);
    const statusFor = async (name: string, minHealthyPercent: number): Promise<number> => {
      const httpFilters = [
        { name: 'filters.http.health_check', settings: { ...SETTINGS, clusters: [{ name, minHealthyPercent }] } },
      ];
      const client = new WireClient(await proxy.http([routeTo('web')], { httpFilters }));
      const { status } = await client.write(CHECK).response();
      client.close();
      return status;
    };
    t.after(() => proxy.close());
    assert.equal(await statusFor('web', 100), 200);
    assert.equal(await statusFor('empty', 0), 200);
    assert.equal(await statusFor('empty', 1), 503);
    assert.equal(await statusFor('unknown', 0), 503);
  });

  test('asks the upstream in pass-through mode, and remembers its answer for a while', async (t) => {
    const upstream = await WireUpstream.answering('HTTP/1.1 503 Down\r\ncontent-length: 4\r\n\r\ndown');
    t.after(() => upstream.close());
    const clock = new ManualClock();
    const proxy = new DataPlaneFixture({ clock });
    proxy.cluster('web', [loopback(upstream.port)]);
    const client = await clientOf(t, proxy, { isPassThrough: true, cacheTimeMs: 1000 });
    assert.equal((await client.write(CHECK).response()).body, 'down');
    const cached = await client.write(CHECK).response();
    assert.deepEqual([cached.status, cached.body, upstream.heads.length], [503, '', 1]);
    clock.turn(1000);
    assert.equal((await client.write(CHECK).response()).body, 'down');
    assert.equal(upstream.heads.length, 2);
  });

  test('fails all checks while the operator says so, and tells every client', async (t) => {
    const proxy = new DataPlaneFixture();
    const client = await clientOf(t, proxy, { isPassThrough: true });
    proxy.dataPlane.failHealthChecks(true);
    const { status, head } = await client.write(CHECK).response();
    assert.equal(status, 503);
    assert.match(head, /x-proxy-immediate-health-check-fail: true\r\n/);
    assert.match(head, /connection: close\r\n/);
    assert.equal(await client.rest(), '');
  });
});

test('POST /healthcheck/fail drains the real program, and /healthcheck/ok takes it back', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-health-'));
  const log = path.join(folder, 'access.log');
  const configYaml = `
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }
static_resources:
  listeners:
  - name: main
    address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - filters:
      - name: envoy.http_connection_manager
        config:
          stat_prefix: ingress
          access_log:
          - { name: envoy.file_access_log, config: { path: ${log}, format: "%RESPONSE_FLAGS% %REQ(:PATH)%\\n" } }
          - name: envoy.file_access_log
            filter: { not_health_check_filter: {} }
            config: { path: ${log}, format: "no check: %REQ(:PATH)%\\n" }
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{ match: { prefix: / }, direct_response: { status: 200, body: { inline_string: direct } } }]
          http_filters:
          - name: envoy.health_check
            config: { pass_through_mode: false, headers: [{ name: ":path", exact_match: /healthz }] }
          - name: envoy.router
`;
  try {
    {
      await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
      const { port } = (await weir.listeners()).get('main')!;
      const get = async (target: string): Promise<Response> => await fetch(`http://127.0.0.1:${port}${target}`);
      const order = async (verb: string): Promise<string> =>
        await (await fetch(`${weir.adminUrl}/healthcheck/${verb}`, { method: 'POST' })).text();
      const ready = async (): Promise<[number, string]> => {
        const response = await fetch(`${weir.adminUrl}/ready`);
        return [response.status, await response.text()];
      };
      assert.equal((await get('/healthz')).status, 200);

      assert.equal((await fetch(`${weir.adminUrl}/healthcheck/fail`)).status, 400);
      assert.equal(await order('fail'), 'OK\n');
      assert.deepEqual(await ready(), [503, 'DRAINING\n']);
      const stats = await (await fetch(`${weir.adminUrl}/stats?filter=^server.(live|state)$`)).text();
      assert.equal(stats, 'server.live: 0\nserver.state: 1\n');
      while ((await get('/healthz')).status !== 503) {
        // The order is on its way to this worker.
      }
      const other = await get('/other');
      assert.equal(other.status, 200);

      assert.equal(await order('ok'), 'OK\n');
      assert.deepEqual(await ready(), [200, 'LIVE\n']);
      while ((await get('/healthz')).status !== 200) {
        // As above.
      }
    }
    const entries = readFileSync(log, 'utf8');
    assert.match(entries, /^LH \/healthz$/m);
    assert.match(entries, /^no check: \/other$/m);
    assert.doesNotMatch(entries, /no check: \/healthz/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
