// Clusters and listeners from files, in the real program: what operators move over them takes effect, under traffic.

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { ReservedPort } from '../support/reserved-port.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const CLUSTER = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const LISTENER = 'type.googleapis.com/envoy.config.listener.v3.Listener';
const ANY_PORT = socketAddress('127.0.0.1', 0);

type Kind = 'clusters' | 'listeners';

class DiscoveredFiles {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'weir-discovery-'));
  readonly paths = {
    clusters: path.join(this.folder, 'clusters.json'),
    listeners: path.join(this.folder, 'listeners.json'),
  };

  constructor(t: TestContext) {
    t.after(() => rmSync(this.folder, { recursive: true }));
  }

  write(kind: Kind, version: string, resources: readonly JsonObject[]): void {
    this.writeText(kind, JSON.stringify({ version_info: version, resources }));
  }

  writeText(kind: Kind, text: string): void {
    const file = this.paths[kind];
    writeFileSync(`${file}.next`, text);
    renameSync(`${file}.next`, file);
  }

  bootstrap(fields: JsonObject = {}): string {
    const source = (kind: Kind): JsonObject => ({ path_config_source: { path: this.paths[kind] } });
    return JSON.stringify({
      node: { id: 'me', cluster: 'us' },
      admin: { address: ANY_PORT },
      dynamic_resources: { cds_config: source('clusters'), lds_config: source('listeners') },
      ...fields,
    });
  }
}

function cluster(name: string, port: number, fields: JsonObject = {}): JsonObject {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: socketAddress('127.0.0.1', port) } }] }];
  return { '@type': CLUSTER, ...clusterNamed(name, { load_assignment: { cluster_name: name, endpoints }, ...fields }) };
}

function listener(name: string, clusterName: string, port = 0, table: JsonObject = {}): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster: clusterName } }];
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }], ...table };
  const address = socketAddress('127.0.0.1', port);
  return { '@type': LISTENER, ...listenerWith([httpFilter({ route_config })], { name, address }) };
}

async function upstreamSaying(t: TestContext, text: string): Promise<number> {
  const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
  const upstream = await WireUpstream.start((socket) => socket.on('data', () => socket.write(answer)));
  t.after(() => upstream.close());
  return upstream.port;
}

async function answerAt(port: number): Promise<string> {
  const client = new WireClient(port);
  const { status, body } = await client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n').response();
  client.close();
  return `${status} ${body}`;
}

async function answerOf(weir: WeirProcess, name: string): Promise<string> {
  return await answerAt((await weir.listeners()).get(name)!.port);
}

const attempts = (weir: WeirProcess, which: 'cds' | 'lds', outcome: string): Promise<number | undefined> =>
  weir.stat(`${which === 'cds' ? 'cluster_manager' : 'listener_manager'}.${which}.update_${outcome}`);

async function dumped(weir: WeirProcess, list: string): Promise<readonly Record<string, never>[]> {
  const text = await weir.admin(`/config_dump?resource=${list}`).catch(() => '{}');
  return (JSON.parse(text) as { configs?: Record<string, never>[] }).configs ?? [];
}

describe('clusters and listeners from files', () => {
  it('are there when the proxy is live, and are listed with their versions', async (t) => {
    const files = new DiscoveredFiles(t);
    files.write('clusters', 'c1', [cluster('one', await upstreamSaying(t, 'one'))]);
    files.write('listeners', 'l1', [listener('in', 'one')]);
    await using weir = await startWeir({ configYaml: files.bootstrap(), args: ['--concurrency', '2'] });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    assert.match(await weir.admin('/clusters'), /^version_info::c1\n(?:.*\n)*one::added_via_api::true/);
    const [shown] = await dumped(weir, 'dynamic_active_clusters');
    assert.equal(shown!.version_info, 'c1');
    const [state] = await dumped(weir, 'dynamic_listeners');
    assert.deepEqual(Object.keys(state!), ['@type', 'name', 'active_state']);
    assert.deepEqual([await attempts(weir, 'cds', 'success'), await attempts(weir, 'lds', 'success')], [1, 1]);
    assert.match(await weir.admin('/stats?filter=version_text'), /cds\.version_text: "c1"\n.*lds\.version_text: "l1"/);
  });

  it('change where a file is moved over theirs: each for itself, and without what is not in it', async (t) => {
    const files = new DiscoveredFiles(t);
    const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
    files.write('clusters', '1', [cluster('one', one)]);
    files.write('listeners', '1', [listener('in', 'one')]);
    await using weir = await startWeir({ configYaml: files.bootstrap() });
    files.write('clusters', '2', [
      cluster('one', one),
      cluster('two', two),
      cluster('bad', one, { connect_timeout: '-1s' }),
    ]);
    await untilEqual(1, () => attempts(weir, 'cds', 'rejected'), 'rejections of clusters');
    assert.match(
      weir.output.stderr,
      /clusters\.json is refused: cluster bad: \S+clusters\.json:1:\d+: resources\[2\]\.connect_timeout/,
    );
    const failed = (await dumped(weir, 'dynamic_warming_clusters')) as readonly { error_state?: { details: string } }[];
    assert.match(failed[0]!.error_state!.details, /resources\[2\]\.connect_timeout/);
    files.write('listeners', '2', [listener('in', 'two'), listener('lost', 'three'), listener('second', 'one')]);
    await untilEqual(1, () => attempts(weir, 'lds', 'rejected'), 'rejections of listeners');
    assert.deepEqual([await answerOf(weir, 'in'), await answerOf(weir, 'second')], ['200 two', '200 one']);
    assert.match(weir.output.stderr, /listener lost: .*cluster "three" does not exist/);
    files.write('listeners', '3', [listener('second', 'two', 0, { validate_clusters: false })]);
    await untilEqual(2, () => attempts(weir, 'lds', 'success'), 'updates of listeners');
    assert.deepEqual([...(await weir.listeners()).keys()], ['second']);
    files.write('clusters', '3', []);
    await untilEqual(2, () => attempts(weir, 'cds', 'success'), 'updates of clusters');
    await untilEqual('503 ', () => answerOf(weir, 'second'), 'the answer without a cluster');
    assert.match(await weir.admin('/clusters'), /^version_info::3\n$/);
    assert.deepEqual(await dumped(weir, 'dynamic_warming_clusters'), []);
  });

  it('are as before where a file cannot be read, and may come later than the proxy', async (t) => {
    const files = new DiscoveredFiles(t);
    await using weir = await startWeir({ configYaml: files.bootstrap() });
    assert.deepEqual([await attempts(weir, 'cds', 'failure'), await attempts(weir, 'lds', 'failure')], [1, 1]);
    files.write('clusters', '1', [cluster('one', await upstreamSaying(t, 'one'))]);
    await untilEqual(1, () => attempts(weir, 'cds', 'success'), 'updates of clusters');
    files.write('listeners', '1', [listener('in', 'one')]);
    await untilEqual(1, () => attempts(weir, 'lds', 'success'), 'updates of listeners');
    files.writeText('listeners', '{"resources": [');
    await untilEqual(2, () => attempts(weir, 'lds', 'failure'), 'failures of listeners');
    assert.equal(await answerOf(weir, 'in'), '200 one');
  });

  it('may stand in a large file, which tells lines of what is wrong, and of which the last counts however fast it is replaced', async (t) => {
    const files = new DiscoveredFiles(t);
    const port = await upstreamSaying(t, 'one');
    // Five hundred of one line each, and the one that may not be behind them.
    const many = (version: number): readonly string[] => {
      const clusters = Array.from({ length: 500 }, (_, at) => cluster(`${version}-${at}`, port));
      return [...clusters, cluster('one', port), cluster('bad', port, { connect_timeout: '-1s' })].map((each) =>
        JSON.stringify(each),
      );
    };
    const write = (version: number): void =>
      files.writeText('clusters', `{"version_info": "${version}", "resources": [\n${many(version).join(',\n')}\n]}`);
    write(1);
    files.write('listeners', '1', [listener('in', 'one')]);
    await using weir = await startWeir({ configYaml: files.bootstrap(), args: ['--concurrency', '1'] });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    assert.match(
      weir.output.stderr,
      /clusters\.json is refused: cluster bad: \S+clusters\.json:503:\d+: resources\[501\]\.connect_timeout/,
    );
    for (let version = 2; version <= 12; version += 1) write(version);
    const names = async (): Promise<string> =>
      [...(await weir.admin('/clusters')).matchAll(/^(\d+)-499::added_via_api/gm)].map(([, version]) => version).join();
    await untilEqual('12', names, 'clusters of the last version');
    assert.equal(await answerOf(weir, 'in'), '200 one');
    files.writeText('clusters', `{"version_info": "13", "resources": [\n${many(13).join(',\n')}`);
    // More than one where the file is heard of again while it is read.
    const hasFailed = async (): Promise<boolean> => (await attempts(weir, 'cds', 'failure'))! > 0;
    await untilEqual(true, hasFailed, 'a failure to read');
    assert.match(weir.output.stderr, /resources are not taken over: \S+clusters\.json:503:\d+: /);
    assert.equal(await names(), '12');
  });

  it('stand beside those of the bootstrap, which keep their names and addresses', async (t) => {
    const files = new DiscoveredFiles(t);
    const [mine, theirs] = [await upstreamSaying(t, 'mine'), await upstreamSaying(t, 'theirs')];
    await using reserved = await ReservedPort.take();
    const { port } = reserved;
    const { '@type': _cluster, ...own } = cluster('one', mine);
    const { '@type': _listener, ...first } = listener('first', 'one', port);
    files.write('clusters', '1', [cluster('one', theirs), cluster('two', theirs)]);
    files.write('listeners', '1', [listener('first', 'two'), listener('thief', 'two', port), listener('other', 'two')]);
    const configYaml = files.bootstrap({ static_resources: { clusters: [own], listeners: [first] } });
    await using weir = await startWeir({ configYaml });
    assert.deepEqual([await answerAt(port), await answerOf(weir, 'other')], ['200 mine', '200 theirs']);
    assert.deepEqual([...(await weir.listeners()).keys()], ['first', 'other']);
    assert.match(weir.output.stderr, /cluster one is left out: the bootstrap has one of this name/);
    assert.match(weir.output.stderr, /listener thief: .*listener first has the same address/);
    assert.equal(await attempts(weir, 'lds', 'rejected'), 1);
  });

  it('change a thousand times under traffic, and no request fails', async (t) => {
    const files = new DiscoveredFiles(t);
    const ports = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
    const rounds = 1000;
    const write = (round: number): void => {
      files.write('clusters', String(round), [cluster('one', ports[round % 2]!), cluster('two', ports[0]!)]);
      const name = round % 3 === 0 ? 'two' : 'one';
      const added = round % 5 === 0 ? [listener('more', 'two')] : [];
      files.write('listeners', String(round), [listener('in', name), ...added]);
    };
    write(0);
    await using weir = await startWeir({ configYaml: files.bootstrap(), args: ['--concurrency', '2'] });
    const { port } = (await weir.listeners()).get('in')!;
    let isOver = false;
    const ask = async (): Promise<Map<string, number>> => {
      const answers = new Map<string, number>();
      while (!isOver) {
        const answer = await answerAt(port);
        answers.set(answer, (answers.get(answer) ?? 0) + 1);
      }
      return answers;
    };
    const clients = [ask(), ask(), ask()];
    for (let round = 1; round <= rounds; round += 1) {
      write(round);
      // Of several that come while one is taken over the last counts.
      if (round % 10 > 0) continue;
      const shown = `listener_manager.lds.version_text: "${round}"\n`;
      await untilEqual(shown, () => weir.admin('/stats?filter=lds.version_text'), 'the version of listeners');
    }
    isOver = true;
    const answers = new Set((await Promise.all(clients)).flatMap((each) => [...each.keys()]));
    assert.deepEqual([...answers].sort(), ['200 one', '200 two']);
    assert.deepEqual([await attempts(weir, 'cds', 'rejected'), await attempts(weir, 'lds', 'rejected')], [0, 0]);
  });
});
