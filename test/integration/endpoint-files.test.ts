// Endpoints from files, in the real program: what operators move over them takes effect, under traffic.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { ASSIGNMENT } from '../support/endpoint-feed.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const CLUSTER = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const ANY_PORT = socketAddress('127.0.0.1', 0);

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-endpoint-files-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

function replace(file: string, version: string, resources: readonly JsonObject[]): void {
  writeFileSync(`${file}.next`, JSON.stringify({ version_info: version, resources }));
  renameSync(`${file}.next`, file);
}

function assignment(name: string, ports: readonly number[], fields: JsonObject = {}): JsonObject {
  const lb_endpoints = ports.map((port) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } }));
  return { '@type': ASSIGNMENT, cluster_name: name, endpoints: [{ lb_endpoints }], ...fields };
}

function edsCluster(name: string, source: JsonObject, fields: JsonObject = {}): JsonObject {
  return { name, type: 'EDS', eds_cluster_config: { eds_config: source }, ...fields };
}

function listener(name: string, cluster: string): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster } }];
  const route_config = {
    validate_clusters: false,
    virtual_hosts: [{ name: 'all', domains: ['*'], routes }],
  };
  return listenerWith([httpFilter({ route_config })], { name, address: ANY_PORT });
}

const bootstrap = (clusters: readonly JsonObject[], listeners: readonly JsonObject[], fields: JsonObject = {}) =>
  JSON.stringify({
    node: { id: 'me', cluster: 'us' },
    admin: { address: ANY_PORT },
    static_resources: { clusters, listeners },
    ...fields,
  });

async function upstreamSaying(t: TestContext, text: string): Promise<number> {
  const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
  const upstream = await WireUpstream.start((socket) => socket.on('data', () => socket.write(answer)));
  t.after(() => upstream.close());
  return upstream.port;
}

async function answerOf(weir: WeirProcess, name: string): Promise<string> {
  const client = new WireClient((await weir.listeners()).get(name)!.port);
  const { status, body } = await client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n').response();
  client.close();
  return `${status} ${body}`;
}

describe('endpoints from files', () => {
  it('are there when the proxy is live, of clusters of the bootstrap and of discovered ones', async (t) => {
    const folder = folderOf(t);
    const [clusters, endpoints] = [path.join(folder, 'clusters.json'), path.join(folder, 'endpoints.json')];
    const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
    const source = { path_config_source: { path: endpoints } };
    replace(endpoints, 'e1', [assignment('fixed', [one]), assignment('shop', [two])]);
    const eds_cluster_config = { eds_config: source, service_name: 'shop' };
    replace(clusters, 'c1', [{ '@type': CLUSTER, ...edsCluster('found', source, { eds_cluster_config }) }]);
    const dynamic_resources = { cds_config: { path: clusters } };
    const configYaml = bootstrap([edsCluster('fixed', source)], [listener('a', 'fixed'), listener('b', 'found')], {
      dynamic_resources,
    });
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    assert.deepEqual([await answerOf(weir, 'a'), await answerOf(weir, 'b')], ['200 one', '200 two']);
    assert.match(await weir.admin('/clusters'), /^found::eds_service_name::shop$/m);
    const dump = JSON.parse(await weir.admin('/config_dump?include_eds&resource=dynamic_endpoint_configs')) as {
      configs: {
        version_info: string;
        client_status: string;
        last_updated: string;
        endpoint_config: { cluster_name: string };
      }[];
    };
    const shown = dump.configs.map(({ version_info, client_status, endpoint_config }) => [
      endpoint_config.cluster_name,
      version_info,
      client_status,
    ]);
    assert.deepEqual(shown.toSorted(), [
      ['fixed', 'e1', 'ACKED'],
      ['shop', 'e1', 'ACKED'],
    ]);
    assert.ok(Date.parse(dump.configs[0]!.last_updated) > Date.now() - 60_000);
    assert.match(await weir.admin('/stats?filter=found.version_text'), /cluster\.found\.version_text: "e1"/);
    replace(endpoints, 'e2', [
      assignment('fixed', [two]),
      assignment('shop', [two], { policy: { overprovisioning_factor: 0 } }),
    ]);
    await untilEqual(1, () => weir.stat('cluster.found.update_rejected'), 'rejections');
    await untilEqual('200 two', () => answerOf(weir, 'a'), 'the answer of the other host');
    assert.equal(await answerOf(weir, 'b'), '200 two');
    assert.match(weir.output.stderr, /endpoints of cluster found: \S+endpoints\.json:1:\d+: resources\[1\]\.policy/);
    const refused = await weir.admin('/config_dump?include_eds&resource=dynamic_endpoint_configs');
    assert.match(refused, /"client_status": "NACKED"/);
    assert.match(refused, /overprovisioning_factor/);
  });

  it('turn away what they say is to be dropped, and no longer when they say otherwise', async (t) => {
    const file = path.join(folderOf(t), 'endpoints.json');
    const port = await upstreamSaying(t, 'one');
    const dropped = { policy: { drop_overloads: [{ category: 'x', drop_percentage: { numerator: 100 } }] } };
    replace(file, '1', [assignment('web', [port])]);
    const configYaml = bootstrap([edsCluster('web', { path: file })], [listener('in', 'web')]);
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    replace(file, '2', [assignment('web', [port], dropped)]);
    await untilEqual(2, () => weir.stat('cluster.web.update_success'), 'updates');
    await untilEqual('503 drop overload', () => answerOf(weir, 'in'), 'an answer of nobody');
    replace(file, '3', [assignment('web', [port])]);
    await untilEqual('200 one', () => answerOf(weir, 'in'), 'the answer of the host');
  });

  it('are read again when a watched folder gets another content, as mounts of Kubernetes do', async (t) => {
    const folder = folderOf(t);
    const publish = (version: string, ports: readonly number[]): void => {
      const content = path.join(folder, `..${version}`);
      mkdirSync(content);
      replace(path.join(content, 'endpoints.json'), version, [assignment('web', ports)]);
      symlinkSync(`..${version}`, path.join(folder, '..data.next'));
      renameSync(path.join(folder, '..data.next'), path.join(folder, '..data'));
    };
    const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
    publish('1', [one]);
    symlinkSync('..data/endpoints.json', path.join(folder, 'endpoints.json'));
    const path_config_source = { path: path.join(folder, 'endpoints.json'), watched_directory: { path: folder } };
    const configYaml = bootstrap([edsCluster('web', { path_config_source })], [listener('in', 'web')]);
    await using weir = await startWeir({ configYaml });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    publish('2', [two]);
    await untilEqual('200 two', () => answerOf(weir, 'in'), 'the answer of the other host');
  });

  it('change a thousand times under traffic, and no request fails', async (t) => {
    const file = path.join(folderOf(t), 'endpoints.json');
    const ports = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two'), await upstreamSaying(t, 'three')];
    const rounds = 1000;
    const write = (round: number): void => {
      const members = ports.filter((_, at) => at !== round % 3 || round % 2 === 0);
      replace(file, String(round), [assignment('web', members)]);
    };
    write(0);
    const configYaml = bootstrap([edsCluster('web', { path: file })], [listener('in', 'web')]);
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    let isOver = false;
    const ask = async (): Promise<Set<string>> => {
      const answers = new Set<string>();
      const { port } = (await weir.listeners()).get('in')!;
      const client = new WireClient(port);
      while (!isOver) {
        const { status, body } = await client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n').response();
        answers.add(`${status} ${body}`);
      }
      client.close();
      return answers;
    };
    const clients = [ask(), ask(), ask()];
    for (let round = 1; round <= rounds; round += 1) {
      write(round);
      if (round % 10 !== 0) continue;
      const shown = `cluster.web.version_text: "${round}"\n`;
      await untilEqual(shown, () => weir.admin('/stats?filter=web.version_text'), 'the version of endpoints');
    }
    isOver = true;
    const answers = new Set((await Promise.all(clients)).flatMap((each) => [...each]));
    assert.deepEqual([...answers].sort(), ['200 one', '200 three', '200 two']);
    const counts = ['rejected', 'failure', 'empty'].map((name) => weir.stat(`cluster.web.update_${name}`));
    assert.deepEqual(await Promise.all(counts), [0, 0, 0]);
  });
});
