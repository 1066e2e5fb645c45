// Health discovery (HDS) with a server by @grpc/grpc-js: it has hosts checked, and hears how they are.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type JsonObject, socketAddress } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { bytesOf } from '../support/control-plane.ts';
import { cluster } from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { type HealthDiscoveryServer, lastReport, startHealthDiscoveryServer } from '../support/health-orders.ts';
import { HealthServer } from '../support/health-server.ts';
import { SecureUpstream } from '../support/secure-upstream.ts';
import { startWeir } from '../support/weir-process.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const ILL = 'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n';
const SHORT = { nanos: 100_000_000 };

function configOf(
  server: Pick<HealthDiscoveryServer, 'port'>,
  api: JsonObject = {},
  clusters: JsonObject[] = [],
): string {
  return JSON.stringify({
    node: { id: 'me', cluster: 'us' },
    admin: { address: socketAddress('127.0.0.1', 0) },
    hds_config: {
      api_type: 'GRPC',
      transport_api_version: 'V3',
      grpc_services: [{ envoy_grpc: { cluster_name: 'health' } }],
      ...api,
    },
    static_resources: { clusters: [cluster('health', server.port, { http2_protocol_options: {} }), ...clusters] },
  });
}

function check(fields: object): object {
  return {
    timeout: { seconds: 60 },
    interval: SHORT,
    unhealthy_threshold: { value: 1 },
    healthy_threshold: { value: 1 },
    ...fields,
  };
}

const BY_HTTP = check({ http_health_check: { path: '/up' } });

function order(
  cluster_name: string,
  health_checks: readonly object[],
  zones: Record<string, readonly number[]>,
): object {
  const locality_endpoints = Object.entries(zones).map(([zone, ports]) => ({
    locality: { region: 'here', zone },
    endpoints: ports.map((port) => ({ address: socketAddress('127.0.0.1', port) })),
  }));
  return { cluster_name, health_checks, locality_endpoints };
}

const answering = (text: string): Promise<HealthServer> => HealthServer.start((socket) => socket.write(text));

/** Waits for a report that says just this. */
async function untilReported(server: HealthDiscoveryServer, expected: readonly string[]): Promise<void> {
  const text = (): string => lastReport(server).toSorted().join('\n');
  await untilEqual([...expected].toSorted().join('\n'), text, 'the last report');
}

describe('hosts that are checked for a server', () => {
  for (const generation of ['V3', 'V2']) {
    it(`are told of at each interval, by cluster and locality: ${generation}`, async (t) => {
      const server = await startHealthDiscoveryServer(t);
      await using good = await answering(OK);
      await using ill = await answering(ILL);
      await using silent = await HealthServer.start(() => {});
      const impatient = check({ http_health_check: { path: '/up' }, timeout: SHORT });
      server.greeting = {
        cluster_health_checks: [
          order('web', [BY_HTTP], { a: [good.port], b: [ill.port] }),
          order('slow', [impatient], { a: [silent.port] }),
          order('tcp', [check({ tcp_health_check: {} })], { a: [good.port] }),
        ],
        interval: SHORT,
      };
      const api = { transport_api_version: generation };
      await using weir = await startWeir({ configYaml: configOf(server, api) });
      const first = await server.until(() => true, 'a request');
      assert.match(first.path, generation === 'V2' ? /discovery\.v2\.Health/ : /health\.v3\.Health/);
      const { node, capability } = first.message.health_check_request!;
      assert.deepEqual([node.id, node.cluster], ['me', 'us']);
      assert.equal((node.build_version ?? '') !== '', generation === 'V2');
      assert.deepEqual(capability.health_check_protocols, [0, 1, 2]);
      if (generation === 'V3') {
        await untilReported(server, [
          `web here/a ${good.port} healthy`,
          `web here/b ${ill.port} unhealthy`,
          `slow here/a ${silent.port} timeout`,
          `tcp here/a ${good.port} healthy`,
        ]);
        assert.match(good.received[0]!, /^GET \/up HTTP\/1\.1\r\nhost: web\r\n/);
      }
      const flat = (): number[] =>
        (server.received.at(-1)!.message.endpoint_health_response?.endpoints_health ?? []).map(
          ({ health_status }) => health_status,
        );
      await untilEqual('1 1 2 4', () => flat().toSorted().join(' '), 'all of them in one list');
      for (const { message, stream } of server.received.slice(1)) {
        assert.equal(stream, 1);
        assert.equal(message.health_check_request, undefined);
        const { cluster_endpoints_health: clusters } = message.endpoint_health_response!;
        assert.equal(clusters.length, generation === 'V3' ? 3 : 0);
      }
      assert.equal(await weir.stat('hds_delegate.requests'), 1);
      assert.equal(await weir.stat('hds_delegate.updates'), 1);
      assert.equal(await weir.stat('hds_delegate.errors'), 0);
      assert.ok((await weir.stat('cluster.web.health_check.success'))! > 0);
      assert.doesNotMatch(await weir.admin('/clusters'), /^web::/m);
    });
  }

  it('recover, fall ill, come and go, and keep what was found of them', async (t) => {
    const server = await startHealthDiscoveryServer(t);
    await using one = await answering(OK);
    await using two = await answering(ILL);
    const tell = (...zones: Record<string, readonly number[]>[]): void => {
      const checks = zones.map((each, at) => order(`c${at}`, [BY_HTTP], each));
      server.greeting = { cluster_health_checks: checks, interval: SHORT };
      server.tell(server.greeting);
    };
    tell({ a: [one.port, two.port] });
    await using weir = await startWeir({ configYaml: configOf(server) });
    await untilReported(server, [`c0 here/a ${one.port} healthy`, `c0 here/a ${two.port} unhealthy`]);
    two.behaviour = (socket) => socket.write(OK);
    await untilReported(server, [`c0 here/a ${one.port} healthy`, `c0 here/a ${two.port} healthy`]);

    // Who stays is not checked anew before anything is said of it.
    const from = server.received.length;
    await using third = await HealthServer.start(() => {});
    tell({ a: [one.port], b: [third.port] }, { a: [two.port] });
    await untilReported(server, [
      `c0 here/a ${one.port} healthy`,
      `c0 here/b ${third.port} unhealthy`,
      `c1 here/a ${two.port} healthy`,
    ]);
    for (const { message } of server.received.slice(from)) {
      for (const { cluster_name, locality_endpoints_health: localities } of message.endpoint_health_response!
        .cluster_endpoints_health) {
        for (const { endpoints_health: endpoints } of localities) {
          for (const { endpoint, health_status } of endpoints) {
            const { port_value: port } = endpoint.address.socket_address;
            if (cluster_name === 'c0' && port === one.port) assert.equal(health_status, 1);
          }
        }
      }
    }
    await weir.untilStat('hds_delegate.updates', 2);
    server.tell(server.greeting!);
    await weir.untilStat('hds_delegate.requests', 3);
    assert.equal(await weir.stat('hds_delegate.updates'), 2, 'the same again is no update');

    tell({ b: [third.port] });
    await untilReported(server, [`c0 here/b ${third.port} unhealthy`]);
    await untilEqual(0, () => one.openConnections + two.openConnections, 'connections of those that are not checked');
  });

  it('go on being checked while the server is away, which hears of them in the next stream', async (t) => {
    const server = await startHealthDiscoveryServer(t);
    await using host = await answering(OK);
    const orders = { cluster_health_checks: [order('web', [BY_HTTP], { a: [host.port] })], interval: SHORT };
    server.greeting = orders;
    await using weir = await startWeir({ configYaml: configOf(server) });
    await untilReported(server, [`web here/a ${host.port} healthy`]);
    server.stop();
    const seen = host.received.length;
    await untilEqual(true, () => host.received.length >= seen + 3, 'checks');
    const next = await startHealthDiscoveryServer(t, server.port);
    next.greeting = orders;
    const first = await next.until(() => true, 'another stream');
    assert.equal(first.message.health_check_request?.node.id, 'me');
    await next.until(({ message }) => message.endpoint_health_response !== undefined, 'a report');
    await untilReported(next, [`web here/a ${host.port} healthy`]);
    assert.ok((await weir.stat('hds_delegate.errors'))! > 0);
    assert.equal(await weir.stat('hds_delegate.updates'), 2);
  });

  it('are refused cluster by cluster, with field and reason, and the others are checked', async (t) => {
    const server = await startHealthDiscoveryServer(t);
    await using host = await answering(OK);
    const good = order('good', [BY_HTTP], { a: [host.port] });
    const named = {
      ...order('named', [BY_HTTP], {}),
      locality_endpoints: [
        { endpoints: [{ address: socketAddress('127.0.0.1', 1) }, { address: socketAddress('a.b', 1) }] },
      ],
    };
    server.greeting = {
      cluster_health_checks: [
        good,
        order('timeless', [check({ http_health_check: { path: '/' }, timeout: {} })], { a: [host.port] }),
        order('twofold', [BY_HTTP, check({ http_health_check: { path: '' } })], { a: [host.port] }),
        order('unchecked', [], { a: [host.port] }),
        named,
        order('good', [BY_HTTP], { b: [host.port] }),
        order('', [BY_HTTP], { b: [host.port] }),
      ],
      interval: SHORT,
    };
    await using weir = await startWeir({ configYaml: configOf(server) });
    await untilReported(server, [`good here/a ${host.port} healthy`]);
    assert.equal(await weir.stat('hds_delegate.errors'), 6);
    const log = weir.output.stderr;
    const refused = (name: string, reason: string): void =>
      assert.ok(
        log.includes(`health discovery server health: cluster ${name} is not checked as asked: ${reason}`),
        log,
      );
    refused('timeless', 'cluster_health_checks[1].health_checks[0].timeout: ');
    refused('twofold', 'cluster_health_checks[2].health_checks[1].http_health_check.path: ');
    refused('unchecked', 'cluster_health_checks[3].health_checks: is required');
    refused('named', 'cluster_health_checks[4].locality_endpoints[0].endpoints[1].address.socket_address.address: ');
    refused('good', 'cluster_health_checks[5].cluster_name: "good" is there before');

    // What may not be leaves what there is.
    server.tell({ cluster_health_checks: [order('good', [], { a: [host.port] })], interval: SHORT });
    await weir.untilStat('hds_delegate.errors', 7);
    server.tell({ cluster_health_checks: [], interval: { seconds: -1 } });
    server.tellRaw(Buffer.from('ffffff', 'hex'));
    await weir.untilStat('hds_delegate.errors', 9);
    const at = server.received.length;
    await server.until(() => true, 'another report', at);
    assert.deepEqual(lastReport(server), [`good here/a ${host.port} healthy`]);
  });

  it('pass where they pass each of several checks', async (t) => {
    const server = await startHealthDiscoveryServer(t);
    await using host = await answering(OK);
    await using silent = await HealthServer.start(() => {});
    const byTcp = check({ tcp_health_check: {} });
    const impatient = check({ http_health_check: { path: '/up' }, timeout: SHORT });
    const zones = { a: [host.port, silent.port] };
    const tell = (...checks: readonly object[]): void => {
      server.greeting = { cluster_health_checks: [order('web', checks, zones)], interval: SHORT };
      server.tell(server.greeting);
    };
    tell(byTcp, impatient);
    await using weir = await startWeir({ configYaml: configOf(server) });
    const healthy = `web here/a ${host.port} healthy`;
    await untilReported(server, [healthy, `web here/a ${silent.port} timeout`]);
    host.behaviour = (socket) => socket.write(ILL);
    await untilReported(server, [`web here/a ${host.port} unhealthy`, `web here/a ${silent.port} timeout`]);
    tell(byTcp);
    await untilReported(server, [healthy, `web here/a ${silent.port} healthy`]);
    tell(byTcp, impatient, byTcp);
    await untilReported(server, [`web here/a ${host.port} unhealthy`, `web here/a ${silent.port} timeout`]);
    host.behaviour = (socket) => socket.write(OK);
    await untilReported(server, [healthy, `web here/a ${silent.port} timeout`]);
    assert.equal(await weir.stat('hds_delegate.errors'), 0);
  });

  it('are asked as often as the server says of hosts without traffic, where it does', async (t) => {
    const server = await startHealthDiscoveryServer(t);
    await using often = await answering(OK);
    await using seldom = await answering(OK);
    const rare = check({ http_health_check: { path: '/up' }, no_traffic_interval: { seconds: 3600 } });
    server.greeting = {
      cluster_health_checks: [
        order('often', [BY_HTTP], { a: [often.port] }),
        order('seldom', [rare], { a: [seldom.port] }),
        order('soon', [check({ tcp_health_check: {}, interval: { seconds: 3600 }, no_traffic_interval: SHORT })], {
          a: [often.port],
        }),
      ],
      interval: SHORT,
    };
    await using weir = await startWeir({ configYaml: configOf(server) });
    await untilEqual(true, () => often.received.length >= 5, 'checks');
    await untilEqual(true, async () => ((await weir.stat('cluster.soon.health_check.attempt')) ?? 0) >= 3, 'checks');
    assert.equal(seldom.received.length, 1);
  });

  it('are checked over TLS where their checks ask for it by transport_socket_matches', async (t) => {
    using folder = new CertificateFolder();
    const upstream = await SecureUpstream.start(t, await folder.make('host'), ['http/1.1']);
    const server = await startHealthDiscoveryServer(t);
    const TYPE = 'extensions.transport_sockets.tls.v3.UpstreamTlsContext';
    const context = { common_tls_context: {}, sni: 'checked.test' };
    const typed_config = { type_url: `type.googleapis.com/envoy.${TYPE}`, value: bytesOf(`proxy.${TYPE}`, context) };
    const transport_socket = { name: 'envoy.transport_sockets.tls', typed_config };
    const criteria = { fields: { tls: { string_value: 'yes' } } };
    const secured = check({ http_health_check: { path: '/up' }, transport_socket_match_criteria: criteria });
    const transport_socket_matches = [{ name: 'tls', match: criteria, transport_socket }];
    const zones = { a: [upstream.port] };
    server.greeting = {
      cluster_health_checks: [
        { ...order('secured', [secured], zones), transport_socket_matches },
        { ...order('plain', [BY_HTTP], zones), transport_socket_matches },
      ],
      interval: SHORT,
    };
    await using weir = await startWeir({ configYaml: configOf(server) });
    await untilReported(server, [`secured here/a ${upstream.port} healthy`, `plain here/a ${upstream.port} unhealthy`]);
    assert.equal(upstream.requests[0]!.serverName, 'checked.test');
    assert.equal(await weir.stat('hds_delegate.errors'), 0);
  });
});
