// Reports of load (LRS) to a server by @grpc/grpc-js: what it is told adds up to what clients have sent, whatever comes and goes.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { assignment, CLUSTER, cluster, ENDPOINTS, serve } from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { EVERY_100_MS, type LoadServer, startLoadServer, totalsOf } from '../support/load-reports.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const FAILED = 'HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n';
const TO_WEB = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
const H2 = { http2_protocol_options: {} };

interface Setup {
  readonly clusters: readonly JsonObject[];
  readonly routes?: readonly JsonObject[];
  readonly api?: JsonObject;
  readonly fields?: JsonObject;
}

function configOf(
  server: Pick<LoadServer, 'port'>,
  { clusters, routes = TO_WEB, api = {}, fields = {} }: Setup,
): string {
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }], validate_clusters: false };
  return JSON.stringify({
    node: { id: 'me', cluster: 'us' },
    admin: { address: ANY_PORT },
    cluster_manager: {
      load_stats_config: {
        api_type: 'GRPC',
        transport_api_version: 'V3',
        grpc_services: [{ envoy_grpc: { cluster_name: 'load' } }],
        ...api,
      },
    },
    static_resources: {
      listeners: [listenerWith([httpFilter({ route_config })], { name: 'in', address: ANY_PORT })],
      clusters: [cluster('load', server.port, H2), ...clusters],
    },
    ...fields,
  });
}

async function upstream(t: TestContext, answer: string): Promise<WireUpstream & { readonly heads: readonly string[] }> {
  const found = await WireUpstream.answering(answer);
  t.after(() => found.close());
  return found;
}

/** A cluster whose endpoints come by discovery. */
function discovered(fields: JsonObject = {}): JsonObject {
  const { load_assignment: _none, ...rest } = cluster('web', 1, fields);
  return { ...rest, type: 'EDS', eds_cluster_config: { eds_config: { ads: {} }, service_name: 'service/web' } };
}

/** Its endpoints by zone. */
function spread(zones: Readonly<Record<string, readonly [priority: number, ...ports: number[]]>>): JsonObject {
  const endpoints = Object.entries(zones).map(([zone, [priority, ...ports]]) => {
    const [{ lb_endpoints }] = assignment('', ...ports).endpoints as [JsonObject];
    return { lb_endpoints: lb_endpoints!, locality: { region: 'here', zone }, priority };
  });
  return { cluster_name: 'service/web', endpoints };
}

function aggregatedFrom(cluster_name: string): JsonObject {
  const grpc_services = [{ envoy_grpc: { cluster_name } }];
  const ads_config = { api_type: 'GRPC', transport_api_version: 'V3', grpc_services };
  return { dynamic_resources: { ads_config, cds_config: { ads: {}, resource_api_version: 'V3' } } };
}

/** Sends them one after the other over one connection. @returns how many were answered with 200. */
async function send(weir: WeirProcess, count: number, path = '/'): Promise<number> {
  const client = new WireClient((await weir.listeners()).get('in')!.port);
  let answered = 0;
  for (let sent = 0; sent < count; sent += 1) {
    const { status } = await client.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).response();
    if (status === 200) answered += 1;
  }
  client.close();
  return answered;
}

const issuedTo =
  (servers: readonly LoadServer[], name: string): (() => number) =>
  () =>
    totalsOf(servers, name).issued;

describe('reports of load', () => {
  for (const generation of ['V3', 'V2']) {
    it(`say who reports, and of the clusters that were asked for how much there was: ${generation}`, async (t) => {
      const server = await startLoadServer(t);
      server.greeting = { clusters: ['web', 'nowhere'], load_reporting_interval: EVERY_100_MS };
      const clusters = [
        cluster('web', (await upstream(t, OK)).port),
        cluster('other', (await upstream(t, FAILED)).port),
      ];
      const api = { transport_api_version: generation };
      await using weir = await startWeir({
        configYaml: configOf(server, { clusters, api }),
        args: ['--concurrency', '2'],
      });
      await weir.untilStat('load_reporter.requests', 1);
      assert.equal(await send(weir, 20), 20);
      await untilEqual(20, issuedTo([server], 'web'), 'what was told');
      await untilEqual(20, () => totalsOf([server], 'web').successful, 'what was told of answers');

      const [first, ...others] = server.received;
      assert.match(first!.path, new RegExp(`\\.${generation.toLowerCase()}\\.LoadReportingService/StreamLoadStats$`));
      assert.deepEqual(first!.message.cluster_stats, []);
      const { node } = first!.message;
      assert.deepEqual(
        [node!.id, node!.cluster, node!.client_features],
        ['me', 'us', ['envoy.lrs.supports_send_all_clusters']],
      );
      assert.equal((node!.build_version ?? '') !== '', generation === 'V2');
      let [newConnections, intervalMs] = [0, 0];
      for (const { message, stream } of others) {
        assert.equal(stream, 1);
        assert.equal(message.node!.id, 'me');
        assert.deepEqual(
          message.cluster_stats.map(({ cluster_name }) => cluster_name),
          ['web'],
        );
        const [stats] = message.cluster_stats;
        const { seconds = 0, nanos = 0 } = stats!.load_report_interval;
        intervalMs += seconds * 1000 + nanos / 1e6;
        assert.ok(seconds * 1000 + nanos / 1e6 > 0);
        assert.equal(stats!.total_dropped_requests ?? 0, 0);
        for (const locality of stats!.upstream_locality_stats) {
          assert.deepEqual(locality.upstream_endpoint_stats, []);
          assert.equal(
            'total_active_connections' in locality,
            generation === 'V3' && locality.total_active_connections! > 0,
          );
          newConnections += locality.total_new_connections ?? 0;
        }
      }
      assert.ok(intervalMs > 0);
      if (generation === 'V2') assert.equal(newConnections, 0);
      else assert.ok(newConnections >= 1);
      assert.equal(await weir.stat('load_reporter.errors'), 0);
      assert.equal((await weir.stat('load_reporter.responses'))! >= server.received.length - 1, true);
    });
  }

  it('name the node once where they are asked to, and speak as the server is spoken to', async (t) => {
    const server = await startLoadServer(t);
    server.greeting = { clusters: ['web'], load_reporting_interval: EVERY_100_MS };
    const service = { envoy_grpc: { cluster_name: 'load' }, initial_metadata: [{ key: 'x-token', value: 'one' }] };
    const api = { set_node_on_first_message_only: true, grpc_services: [service] };
    const config = configOf(server, { clusters: [cluster('web', (await upstream(t, OK)).port)], api });
    await using _weir = await startWeir({ configYaml: config });
    const third = await server.until(() => server.received.length >= 3, 'three reports');
    assert.equal(third.metadata['x-token'], 'one');
    assert.deepEqual(
      server.received.map(({ message }) => message.node?.id),
      ['me', ...server.received.slice(1).map(() => undefined)],
    );
  });

  it('add up to what clients have sent, while hosts and clusters come, move and go, counters are reset and servers end', async (t) => {
    const plane = await ControlPlane.start(t);
    const servers = [await startLoadServer(t)];
    const question = {
      send_all_clusters: true,
      report_endpoint_granularity: true,
      load_reporting_interval: EVERY_100_MS,
    };
    servers[0]!.greeting = question;
    const upstreams = [await upstream(t, OK), await upstream(t, OK), await upstream(t, FAILED)] as const;
    const [one, two, failing] = upstreams.map(({ port }) => port) as [number, number, number];
    serve(plane, '1', [discovered()], []);
    plane.set(ENDPOINTS, '1', [spread({ a: [0, one] })]);
    const configYaml = configOf(servers[0]!, {
      clusters: [cluster('plane', plane.port, H2)],
      fields: aggregatedFrom('plane'),
    });
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    await weir.untilStat('load_reporter.requests', 1);

    let isOver = false;
    const clients = [1, 2, 3].map(async () => {
      while (!isOver) await send(weir, 10);
    });
    const issued = issuedTo(servers, 'web');
    const untilMore = async (): Promise<void> => {
      const from = issued();
      await untilEqual(true, () => issued() >= from + 30, 'more of it');
    };
    await untilMore();
    plane.set(ENDPOINTS, '2', [spread({ a: [0, one, two] })]);
    await untilMore();
    plane.set(ENDPOINTS, '3', [spread({ b: [0, one], a: [1, two] })]);
    await untilMore();

    // Nothing is on its way any more when the server goes.
    servers[0]!.tell({ ...question, load_reporting_interval: { seconds: 600 } });
    await weir.untilStat('load_reporter.requests', 2);
    await untilEqual(servers[0]!.received.length, async () => (await weir.stat('load_reporter.responses'))!, 'reports');
    servers[0]!.stop();
    const seen = (): number => upstreams.reduce((sum, { heads }) => sum + heads.length, 0);
    const before = seen();
    await untilEqual(true, () => seen() >= before + 60, 'requests that nobody is told of');
    servers.push(await startLoadServer(t, servers[0]!.port));
    const first = await servers[1]!.until(() => true, 'another stream');
    assert.equal(first.message.node!.id, 'me');
    assert.ok(issuedTo([servers[1]!], 'web')() >= 60, 'a stream begins with what was counted before it');
    assert.ok((await weir.stat('load_reporter.retries'))! > 0);
    assert.ok((await weir.stat('load_reporter.errors'))! > 0);
    servers[1]!.tell(question);
    await untilMore();

    await fetch(`${weir.adminUrl}/reset_counters`, { method: 'POST' });
    plane.set(ENDPOINTS, '4', [spread({ c: [0, failing], b: [0, two] })]);
    await untilMore();
    plane.set(CLUSTER, '5', [discovered({ connect_timeout: '3s' })]);
    await untilMore();
    plane.set(CLUSTER, '6', []);
    await untilEqual(undefined, () => weir.admin('/clusters').then((text) => text.match(/^web::/m)?.[0]), 'its end');
    isOver = true;
    await Promise.all(clients);

    await untilEqual(seen(), issued, 'all that was issued');
    const totals = totalsOf(servers, 'web');
    assert.deepEqual(totals.hosts, Object.fromEntries(upstreams.map(({ port, heads }) => [port, heads.length])));
    await untilEqual(upstreams[2].heads.length, () => totalsOf(servers, 'web').failed, 'all that have failed');
    await untilEqual(
      upstreams[0].heads.length + upstreams[1].heads.length,
      () => totalsOf(servers, 'web').successful,
      'all that were answered',
    );
    assert.deepEqual(Object.keys(totals.localities).toSorted(), ['0 here/a/', '0 here/b/', '0 here/c/', '1 here/a/']);
    const all = servers.flatMap(({ received }) => received.flatMap(({ message }) => message.cluster_stats));
    for (const { cluster_name, cluster_service_name } of all) {
      if (cluster_name === 'web') assert.equal(cluster_service_name, 'service/web');
    }
    assert.equal(
      all.some(({ cluster_name }) => cluster_name === 'plane'),
      true,
    );
  });

  it('tell what was turned away, by category where a load assignment drops it', async (t) => {
    const server = await startLoadServer(t);
    server.greeting = { clusters: ['web', 'full'], load_reporting_interval: EVERY_100_MS };
    const drop_overloads = [{ category: 'lb', drop_percentage: { numerator: 100 } }];
    const { port } = await upstream(t, OK);
    const web = cluster('web', port);
    const clusters = [
      { ...web, load_assignment: { ...(web.load_assignment as JsonObject), policy: { drop_overloads } } },
      cluster('full', port, { circuit_breakers: { thresholds: [{ max_requests: 0 }] } }),
    ];
    const routes = [
      { match: { prefix: '/full' }, route: { cluster: 'full' } },
      { match: { prefix: '/' }, route: { cluster: 'web' } },
    ];
    const config = configOf(server, { clusters, routes });
    await using weir = await startWeir({ configYaml: config, args: ['--concurrency', '2'] });
    await weir.untilStat('load_reporter.requests', 1);
    assert.equal(await send(weir, 7), 0);
    assert.equal(await send(weir, 5, '/full'), 0);
    await untilEqual(7, () => totalsOf([server], 'web').dropped, 'drops');
    await untilEqual(5, () => totalsOf([server], 'full').dropped, 'overflows');
    assert.deepEqual(totalsOf([server], 'web').drops, { lb: 7 });
    assert.deepEqual(totalsOf([server], 'full').drops, {});
    assert.equal(totalsOf([server], 'web').issued, 0);
  });

  it('go on as before when the server says what cannot be done, and end with its stream', async (t) => {
    const server = await startLoadServer(t);
    server.greeting = { clusters: ['web'], load_reporting_interval: EVERY_100_MS };
    const config = configOf(server, { clusters: [cluster('web', (await upstream(t, OK)).port)] });
    await using weir = await startWeir({ configYaml: config });
    await weir.untilStat('load_reporter.requests', 1);
    server.tell({ clusters: ['other'] });
    server.tellRaw(Buffer.from('ffffff', 'hex'));
    await weir.untilStat('load_reporter.errors', 2);
    assert.match(weir.output.stderr, /load reporting server load: a message is refused: load_reporting_interval: 0 ms/);
    assert.equal(await send(weir, 3), 3);
    await untilEqual(3, issuedTo([server], 'web'), 'what was told');

    server.endStreams();
    await server.until(({ stream }) => stream === 2, 'another stream');
    assert.equal(await weir.stat('load_reporter.errors'), 2, 'a clean end is none');
    server.endStreams(14);
    await server.until(({ stream }) => stream === 3, 'a third stream');
    await weir.untilStat('load_reporter.errors', 3);
    await weir.untilStat('load_reporter.retries', 2);
  });

  it('come in pieces that any server takes, where there are very many clusters', async (t) => {
    const server = await startLoadServer(t);
    server.greeting = { send_all_clusters: true, load_reporting_interval: { seconds: 1 } };
    const long = 'x'.repeat(1000);
    const clusters = Array.from({ length: 3000 }, (_, at) => cluster(`${long}-${at}`, 1));
    const config = configOf(server, { clusters: [cluster('web', 1), ...clusters] });
    await using _weir = await startWeir({ configYaml: config });
    const names = (): Set<string> =>
      new Set(server.received.flatMap(({ message }) => message.cluster_stats.map((each) => each.cluster_name)));
    await untilEqual(3002, () => names().size, 'clusters');
    for (const { message } of server.received) assert.ok(message.cluster_stats.length < 2500);
  });

  const HOURLY = { seconds: 3600 };

  it('tell at the end of the process what has not been told, what was on its way among it', async (t) => {
    const server = await startLoadServer(t);
    server.greeting = { clusters: ['web'], load_reporting_interval: HOURLY };
    const slow = await WireUpstream.start((socket) => void socket.on('data', () => {}));
    t.after(() => slow.close());
    const web = cluster('web', (await upstream(t, OK)).port);
    const routes = [{ match: { prefix: '/slow' }, route: { cluster: 'slow' } }, ...TO_WEB];
    const clusters = [web, cluster('slow', slow.port)];
    server.greeting = { clusters: ['web', 'slow'], load_reporting_interval: HOURLY };
    await using weir = await startWeir({
      configYaml: configOf(server, { clusters, routes }),
      args: ['--concurrency', '2'],
    });
    await weir.untilStat('load_reporter.requests', 1);
    assert.equal(await send(weir, 20), 20);
    const client = new WireClient((await weir.listeners()).get('in')!.port);
    client.write('GET /slow HTTP/1.1\r\nhost: x\r\n\r\n');
    await untilEqual(1, () => slow.sockets.length, 'a request that is not answered yet');
    const stopped = weir.stop();
    await untilEqual(true, () => weir.output.stderr.includes('shutting down'), 'the beginning of the end');
    slow.sockets[0]!.write(OK);
    assert.equal((await client.response()).status, 200);
    assert.equal((await stopped).code, 0);
    assert.equal(totalsOf([server], 'web').successful, 20);
    assert.equal(totalsOf([server], 'slow').successful, 1);
    assert.equal(server.received.at(-1)!.message.cluster_stats.length, 2);
    client.close();
  });

  it('keep the process for a second at most, where the server does not end the stream', async (t) => {
    const server = await startLoadServer(t);
    server.keepsStreams = true;
    server.greeting = { clusters: ['web'], load_reporting_interval: HOURLY };
    const config = configOf(server, { clusters: [cluster('web', (await upstream(t, OK)).port)] });
    await using weir = await startWeir({ configYaml: config });
    await weir.untilStat('load_reporter.requests', 1);
    assert.equal(await send(weir, 3), 3);
    const { code } = await weir.stop();
    assert.equal(code, 0);
    assert.equal(totalsOf([server], 'web').issued, 3);
  });
});
