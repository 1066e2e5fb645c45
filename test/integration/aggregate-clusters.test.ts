// Aggregate clusters in the real program: requests go to the hosts of the first of their clusters that can take them, while
// those come, go and fall ill.

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import {
  clusterNamed,
  httpFilter,
  type JsonObject,
  listenerWith,
  socketAddress,
  tcpFilter,
} from '../support/bootstrap.ts';
import { upstreamSaying } from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { UdpClient, UdpServer } from '../support/udp-client.ts';
import { runWeir, startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const CLUSTER = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const AGGREGATE = 'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig';
const ANY_PORT = socketAddress('127.0.0.1', 0);
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

const BY_ADDRESS = [{ source_ip: {} }];

function udpListener(cluster: string): JsonObject {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig',
    stat_prefix: 'udp',
    cluster,
    hash_policies: [{ source_ip: true }],
  };
  const address = { socket_address: { protocol: 'UDP', address: '127.0.0.1', port_value: 0 } };
  return { name: 'udp', address, listener_filters: [{ name: 'envoy.filters.udp_listener.udp_proxy', typed_config }] };
}

class ClustersFile {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'weir-aggregates-'));
  readonly path = path.join(this.folder, 'clusters.json');
  #version = 0;

  constructor(t: TestContext) {
    t.after(() => rmSync(this.folder, { recursive: true }));
  }

  write(...clusters: readonly JsonObject[]): void {
    this.#version += 1;
    const resources = clusters.map((each) => ({ '@type': CLUSTER, ...each }));
    writeFileSync(`${this.path}.next`, JSON.stringify({ version_info: String(this.#version), resources }));
    renameSync(`${this.path}.next`, this.path);
  }

  bootstrap(route: JsonObject = {}, cluster = 'all'): string {
    const routes = [
      {
        match: { prefix: '/' },
        route: { cluster, ...route },
        response_headers_to_add: [{ header: { key: 'cluster', value: '%UPSTREAM_CLUSTER%' } }],
      },
    ];
    const route_config = { virtual_hosts: [{ name: 'v', domains: ['*'], routes }], validate_clusters: false };
    return JSON.stringify({
      node: { id: 'me', cluster: 'us' },
      admin: { address: ANY_PORT },
      dynamic_resources: { cds_config: { path_config_source: { path: this.path } } },
      static_resources: {
        listeners: [
          listenerWith([httpFilter({ route_config })], { name: 'http', address: ANY_PORT }),
          listenerWith([tcpFilter({ stat_prefix: 'tcp', cluster, hash_policy: BY_ADDRESS })], {
            name: 'tcp',
            address: ANY_PORT,
          }),
          udpListener(cluster),
        ],
      },
    });
  }
}

function cluster(name: string, ports: readonly number[], health = 'HEALTHY', fields: JsonObject = {}): JsonObject {
  const lb_endpoints = ports.map((port) => ({
    endpoint: { address: socketAddress('127.0.0.1', port) },
    health_status: health,
  }));
  return clusterNamed(name, { load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints }] }, ...fields });
}

function aggregate(name: string, clusters: readonly string[], fields: JsonObject = {}): JsonObject {
  const cluster_type = { name: 'envoy.clusters.aggregate', typed_config: { '@type': AGGREGATE, clusters } };
  return { name, cluster_type, lb_policy: 'CLUSTER_PROVIDED', ...fields };
}

async function clientOf(weir: WeirProcess, name = 'http'): Promise<WireClient> {
  return new WireClient((await weir.listeners()).get(name)!.port);
}

async function ask(client: WireClient, fields = ''): Promise<string> {
  const { status, body, head } = await client.write(GET.replace('\r\n\r\n', `\r\n${fields}\r\n`)).response();
  const from = /^cluster: (.*)\r$/m.exec(head)?.[1] ?? '';
  return `${status} ${body} ${from}`;
}

describe('an aggregate cluster', () => {
  it('has requests answered by the first cluster that can, and counted there', async (t) => {
    const [one, two] = await Promise.all([upstreamSaying(t, 'one'), upstreamSaying(t, 'two')]);
    const file = new ClustersFile(t);
    const all = aggregate('all', ['first', 'second']);
    file.write(cluster('first', [one]), cluster('second', [two]), all);
    await using weir = await startWeir({ configYaml: file.bootstrap(), args: ['--concurrency', '2'] });
    const client = await clientOf(weir);
    assert.equal(await ask(client), '200 one first');
    file.write(cluster('first', [one], 'UNHEALTHY'), cluster('second', [two]), all);
    await untilEqual('200 two second', () => ask(client), 'the answer of the second cluster');
    file.write(cluster('first', [one]), cluster('second', [two]), all);
    await untilEqual('200 one first', () => ask(client), 'the answer of the first cluster again');
    const stat = (name: string): Promise<number | undefined> => weir.stat(`cluster.${name}`);
    const isCounted = async (): Promise<boolean> =>
      (await stat('first.upstream_rq_total'))! >= 2 &&
      (await stat('first.upstream_rq_200')) === (await stat('first.upstream_rq_total')) &&
      (await stat('second.upstream_rq_total'))! >= 1;
    await untilEqual(true, isCounted, 'requests counted where they went');
    assert.equal(await stat('all.upstream_rq_total'), 0);
    assert.equal(await stat('all.membership_total'), 0);
    assert.match(await weir.admin('/clusters'), /^all::observability_name::all$/m);
    const raw = await clientOf(weir, 'tcp');
    assert.equal((await raw.write(GET).response()).body, 'one');
    raw.close();
    client.close();
  });

  it('has the hosts of clusters that come and go, of other aggregate clusters, and of none', async (t) => {
    const [one, two] = await Promise.all([upstreamSaying(t, 'one'), upstreamSaying(t, 'two')]);
    const file = new ClustersFile(t);
    file.write(aggregate('all', ['first', 'rest']));
    await using weir = await startWeir({ configYaml: file.bootstrap() });
    const client = await clientOf(weir);
    assert.match(await ask(client), /^503 no healthy upstream/);
    await weir.untilStat('cluster.all.upstream_cx_none_healthy', 1);
    const steps: readonly (readonly [string, readonly JsonObject[]])[] = [
      ['200 two second', [aggregate('rest', ['second']), cluster('second', [two])]],
      ['200 one first', [aggregate('rest', ['second']), cluster('second', [two]), cluster('first', [one])]],
      ['200 two second', [aggregate('rest', ['second']), cluster('second', [two])]],
      ['200 two rest', [cluster('rest', [two])]],
      ['200 one first', [aggregate('rest', ['first']), cluster('first', [one])]],
    ];
    for (const [answer, others] of steps) {
      file.write(aggregate('all', ['first', 'rest']), ...others);
      await untilEqual(answer, () => ask(client), answer);
    }
    file.write(aggregate('all', ['first', 'rest']));
    await untilEqual(true, async () => (await ask(client)).startsWith('503'), 'an answer without hosts');
    client.close();
  });

  it('may be replaced under requests, and by one without hosts of others, without a failure', async (t) => {
    const [one, two] = await Promise.all([upstreamSaying(t, 'one'), upstreamSaying(t, 'two')]);
    const file = new ClustersFile(t);
    const both = [cluster('first', [one]), cluster('second', [two])];
    file.write(...both, aggregate('all', ['first', 'second']));
    await using weir = await startWeir({ configYaml: file.bootstrap(), args: ['--concurrency', '2'] });
    let isOver = false;
    const asking = Array.from({ length: 4 }, async () => {
      const client = await clientOf(weir);
      const answers: string[] = [];
      while (!isOver) answers.push(await ask(client));
      client.close();
      return answers;
    });
    for (let round = 0; round < 50; round++) {
      const all =
        round % 3 === 0
          ? aggregate('all', ['second', 'first'])
          : round % 3 === 1
            ? cluster('all', [two])
            : aggregate('all', ['first', 'second']);
      const first = round % 2 === 0 ? [] : [cluster('first', [one], round % 4 === 1 ? 'UNHEALTHY' : 'HEALTHY')];
      file.write(all, ...first, cluster('second', [two]));
      const attempts = round + 2;
      await untilEqual(attempts, () => weir.stat('cluster_manager.cds.update_success'), `update ${attempts}`);
    }
    isOver = true;
    const answers = (await Promise.all(asking)).flat();
    assert.deepEqual(
      answers.filter((answer) => !answer.startsWith('200 ')),
      [],
    );
    assert.ok(answers.length > 0);
    assert.equal(weir.output.stderr.includes('TypeError'), false);
  });

  it('is refused when it would be among its own clusters', async (t) => {
    const one = await upstreamSaying(t, 'one');
    const file = new ClustersFile(t);
    file.write(aggregate('all', ['inner']), aggregate('inner', ['first']), cluster('first', [one]));
    await using weir = await startWeir({ configYaml: file.bootstrap() });
    const client = await clientOf(weir);
    assert.equal(await ask(client), '200 one first');
    file.write(aggregate('all', ['inner']), aggregate('inner', ['first', 'all']), cluster('first', [one]));
    await untilEqual(1, () => weir.stat('cluster_manager.cds.update_rejected'), 'rejections');
    assert.match(weir.output.stderr, /cluster inner: .*would be among its own: inner, all, inner/);
    assert.equal(await ask(client), '200 one first');
    client.close();
  });

  it('has retries go to other priorities, and keeps to the limits of each cluster', async (t) => {
    const two = await upstreamSaying(t, 'two');
    const failing = await WireUpstream.answering('HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n');
    t.after(() => failing.close());
    const file = new ClustersFile(t);
    const full = { circuit_breakers: { thresholds: [{ max_requests: 0 }] } };
    const all = aggregate('all', ['first', 'second']);
    const second = cluster('second', [two]);
    file.write(cluster('first', [failing.port]), second, all);
    const retry_policy = {
      retry_on: '5xx',
      num_retries: 1,
      retry_back_off: { base_interval: '0.001s' },
      retry_priority: {
        name: 'envoy.retry_priorities.previous_priorities',
        typed_config: {
          '@type':
            'type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig',
          update_frequency: 1,
        },
      },
    };
    await using weir = await startWeir({ configYaml: file.bootstrap({ retry_policy }) });
    const client = await clientOf(weir);
    for (let i = 0; i < 5; i++) assert.equal(await ask(client), '200 two second');
    await weir.untilStat('cluster.all.upstream_rq_retry', 5);
    await weir.untilStat('cluster.first.upstream_rq_total', 5);
    file.write(cluster('first', [failing.port], 'HEALTHY', full), second, all);
    const overflow = '503 upstream connect error or disconnect/reset before headers. reset reason: overflow first';
    await untilEqual(overflow, () => ask(client), 'the limit of the first cluster');
    await weir.untilStat('cluster.first.upstream_rq_pending_overflow', 1);
    assert.equal(await weir.stat('cluster.all.upstream_rq_pending_overflow'), 0);
    client.close();
  });

  it('leaves hashes to its clusters: of HTTP, TCP and datagrams', async (t) => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const ports = await Promise.all(names.map((name) => upstreamSaying(t, name)));
    for (const [at, port] of ports.entries()) await UdpServer.start(t, (text) => `${names[at]} ${text}`, port);
    const file = new ClustersFile(t);
    const ring = { lb_policy: 'RING_HASH' };
    const all = aggregate('all', ['first', 'second']);
    const second = cluster('second', ports.slice(3), 'HEALTHY', ring);
    file.write(cluster('first', ports.slice(0, 3), 'HEALTHY', ring), second, all);
    const hash_policy = [{ header: { header_name: 'x-key' } }];
    await using weir = await startWeir({ configYaml: file.bootstrap({ hash_policy }), args: ['--concurrency', '2'] });
    const client = await clientOf(weir);
    const answers = async (): Promise<readonly string[]> => {
      const told: string[] = [];
      for (let key = 0; key < 20; key++) told.push((await ask(client, `x-key: ${key}\r\n`)).slice('200 '.length));
      return told;
    };
    const ofFirst = await answers();
    assert.deepEqual(await answers(), ofFirst);
    assert.deepEqual([...new Set(ofFirst)].toSorted(), ['a first', 'b first', 'c first']);

    const addresses = Array.from({ length: 12 }, (_, at) => `127.0.1.${at + 1}`);
    const tcpPort = (await weir.listeners()).get('tcp')!.port;
    const udpPort = Number(/^udp::127\.0\.0\.1:(\d+)$/m.exec(await weir.admin('/listeners'))![1]);
    const byAddress = async (): Promise<readonly string[]> => {
      const told: string[] = [];
      for (const address of addresses) {
        const raw = new WireClient(tcpPort, '127.0.0.1', address);
        told.push((await raw.write(GET).response()).body);
        raw.close();
        const datagrams = await UdpClient.to(t, udpPort, address);
        told.push(await datagrams.ask('x'));
      }
      return told;
    };
    const first = await byAddress();
    assert.deepEqual(await byAddress(), first);
    for (const [at, told] of first.entries()) assert.match(told, at % 2 === 0 ? /^[abc]$/ : /^[abc] x$/);
    // One address has one host, whatever speaks.
    for (let at = 0; at < first.length; at += 2) assert.equal(first[at + 1], `${first[at]} x`);
    assert.ok(new Set(first).size > 2);

    file.write(cluster('first', ports.slice(0, 3), 'UNHEALTHY', ring), second, all);
    await untilEqual(true, async () => (await ask(client)).endsWith(' second'), 'the second cluster');
    const ofSecond = await answers();
    assert.deepEqual(await answers(), ofSecond);
    assert.deepEqual([...new Set(ofSecond)].toSorted(), ['d second', 'e second', 'f second']);
    for (const told of await byAddress()) assert.match(told, /^[def]( x)?$/);
    client.close();
  });

  it('leaves subsets to its clusters: health alone says which one', async (t) => {
    const [blue, green, other] = [
      await upstreamSaying(t, 'blue'),
      await upstreamSaying(t, 'green'),
      await upstreamSaying(t, 'other'),
    ];
    const file = new ClustersFile(t);
    const colored = (name: string, hosts: Readonly<Record<string, number>>, health: string): JsonObject => {
      const lb_endpoints = Object.entries(hosts).map(([color, port]) => ({
        endpoint: { address: socketAddress('127.0.0.1', port) },
        metadata: { filter_metadata: { 'envoy.lb': { color } } },
        health_status: health,
      }));
      const lb_subset_config = { fallback_policy: 'NO_FALLBACK', subset_selectors: [{ keys: ['color'] }] };
      const load_assignment = { cluster_name: name, endpoints: [{ lb_endpoints }] };
      return clusterNamed(name, { load_assignment, lb_subset_config });
    };
    const all = aggregate('all', ['first', 'second']);
    const second = colored('second', { green: other }, 'HEALTHY');
    file.write(colored('first', { blue, green }, 'HEALTHY'), second, all);
    const metadata_match = { filter_metadata: { 'envoy.lb': { color: 'green' } } };
    await using weir = await startWeir({ configYaml: file.bootstrap({ metadata_match }) });
    const client = await clientOf(weir);
    for (let i = 0; i < 4; i++) assert.equal(await ask(client), '200 green first');
    file.write(colored('first', { blue, green }, 'UNHEALTHY'), second, all);
    await untilEqual('200 other second', () => ask(client), 'the second cluster');
    file.write(colored('first', { blue }, 'HEALTHY'), second, all);
    await untilEqual(true, async () => (await ask(client)).startsWith('503 '), 'the first cluster, which has none');
    client.close();
  });

  const ORIGINAL_DST = { name: 'named', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED' };

  it('says which of its clusters have no hosts to give: of discovery, once', async (t) => {
    const file = new ClustersFile(t);
    const first = cluster('first', [await upstreamSaying(t, 'one')]);
    const all = aggregate('all', ['named', 'first']);
    file.write(ORIGINAL_DST, first, all);
    await using weir = await startWeir({ configYaml: file.bootstrap() });
    const client = await clientOf(weir);
    assert.equal(await ask(client), '200 one first');
    file.write(ORIGINAL_DST, { ...first, connect_timeout: '7s' }, all);
    await untilEqual(1, () => weir.stat('cluster_manager.cluster_modified'), 'another cluster');
    const warnings = weir.output.stderr.match(
      /\[warning\].*aggregate cluster all: cluster "named" gives no hosts here/g,
    );
    assert.equal(warnings?.length, 1);
    client.close();
  });

  it('says the same when a bootstrap is read', async () => {
    const clusters = [ORIGINAL_DST, aggregate('all', ['named'])];
    const configYaml = JSON.stringify({ static_resources: { clusters } });
    const { stderr } = await runWeir(['--mode', 'validate', '--config-yaml', configYaml]);
    assert.match(stderr, /clusters\[1\]\.cluster_type\.typed_config\.clusters: cluster "named" gives no hosts here/);
  });
});
