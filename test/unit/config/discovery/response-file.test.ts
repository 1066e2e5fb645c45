import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { offerRawResource } from '../../../../src/config/exchange.ts';
import {
  type DiscoveredResource,
  type DiscoveredResponse,
  disableExtensions,
  openResponseFile,
  type ResourceType,
  UnknownFieldPolicy,
} from '../../../../src/config/index.ts';
import { EXTENSIONS } from '../../../../src/extensions/control-registry.ts';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, mustLoad } from '../../../support/bootstrap.ts';
import { readAll } from '../../../support/discovered-response.ts';

const CLUSTER = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const LISTENER = 'type.googleapis.com/envoy.config.listener.v3.Listener';
const FILE_SOURCE: JsonObject = { path_config_source: { path: '/nowhere/response.yaml' } };
const DYNAMIC: JsonObject = {
  node: { id: 'me', cluster: 'us' },
  dynamic_resources: { cds_config: FILE_SOURCE, lds_config: FILE_SOURCE },
};
const DISCOVERABLE = mustLoad(DYNAMIC).discoverable;
const TOLERANT = new UnknownFieldPolicy('warn');

type Opened<Settings> = DiscoveredResponse<Settings> | { readonly faults: readonly string[] };

/** One resource a line, so that faults tell them apart: the first is on line 2. */
function openText<Settings>(
  t: TestContext,
  type: ResourceType<Settings>,
  text: string,
  unknownFields = TOLERANT,
): Opened<Settings> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-response-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'r.yaml');
  writeFileSync(file, text);
  return openResponseFile(file, type, unknownFields);
}

function textOf(resources: readonly JsonObject[], version = '1'): string {
  const lines = resources.map((resource) => `- ${JSON.stringify(resource)}\n`);
  return `{version_info: "${version}", resources: [\n${lines.map((line) => line.slice(2, -1)).join(',\n')}]}`;
}

function read<Settings>(
  t: TestContext,
  type: ResourceType<Settings>,
  resources: readonly JsonObject[],
  unknownFields = TOLERANT,
): readonly DiscoveredResource<Settings>[] {
  const opened = openText(t, type, textOf(resources), unknownFields);
  assert.ok('offered' in opened, JSON.stringify(opened));
  return readAll(opened);
}

/** Without the folder. */
function errorsOf(resource: DiscoveredResource<unknown>): readonly string[] {
  return resource.isGood ? [] : resource.errors.map((error) => error.replace(/^.*\/(?=r\.yaml)/, ''));
}

function cluster(name: string, fields: JsonObject = {}): JsonObject {
  return { '@type': CLUSTER, ...clusterNamed(name, fields) };
}

function routedTo(name: string, clusterName: string, table: JsonObject = {}): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster: clusterName } }];
  const routeConfig = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }], ...table };
  return { '@type': LISTENER, ...listenerWith([httpFilter({ route_config: routeConfig })], { name }) };
}

describe('a response in a file', () => {
  it('may have its resources in wrappers, which say nothing that a file goes by', (t) => {
    const wrapped = (resource: JsonObject, fields: JsonObject = {}): JsonObject => ({
      '@type': 'type.googleapis.com/envoy.service.discovery.v3.Resource',
      resource,
      ...fields,
    });
    const resources = [
      wrapped(cluster('first'), { name: 'first', version: '7' }),
      cluster('second'),
      wrapped(cluster('third', { connect_timeout: '-1s' })),
      wrapped(cluster('fourth'), { name: 'other' }),
      wrapped(cluster('fifth'), { ttl: '5s' }),
      wrapped(routedTo('in', 'first')),
      { '@type': 'type.googleapis.com/envoy.service.discovery.v3.Resource', name: 'sixth' },
    ];
    const read_ = read(t, DISCOVERABLE.clusters(), resources);
    assert.deepEqual(
      read_.map(({ name, isGood }) => [name, isGood]),
      [
        ['first', true],
        ['second', true],
        ['third', false],
        ['fourth', false],
        ['fifth', true],
        ['', false],
        ['', false],
      ],
    );
    assert.match(errorsOf(read_[2]!)[0]!, /^r\.yaml:4:\d+: resources\[2\]\.resource\.connect_timeout: -1s/);
    assert.match(
      errorsOf(read_[3]!)[0]!,
      /^r\.yaml:5:\d+: resources\[3\]\.name: "other" is not the name of what is in it, "fourth"/,
    );
    assert.match(read_[4]!.warnings[0]!, /r\.yaml:6:\d+: resources\[4\]\.ttl: is not gone by in a file/);
    assert.match(errorsOf(read_[5]!)[0]!, /resources\[5\]\.resource: is no /);
  });

  it('has its resources read one by one: what is wrong with one concerns no other', (t) => {
    const clusters = [
      cluster('first'),
      cluster('broken', { connect_timeout: '-1s' }),
      cluster('odd', { type: 'NEVER' }),
      { '@type': LISTENER, name: 'stranger' },
      cluster('lacking', {
        dns_lookup_family: 'V4_ONLY',
        type: 'EDS',
        eds_cluster_config: { eds_config: { ads: {} } },
      }),
      cluster('last'),
    ];
    const opened = openText(t, DISCOVERABLE.clusters(), textOf(clusters, '7'));
    assert.ok('offered' in opened);
    assert.deepEqual([opened.version, opened.names], ['7', ['first', 'broken', 'odd', '', 'lacking', 'last']]);
    const found = readAll(opened);
    assert.deepEqual(
      found.map(({ isGood, name }) => [isGood, name]),
      [
        [true, 'first'],
        [false, 'broken'],
        [false, 'odd'],
        [false, ''],
        [false, 'lacking'],
        [true, 'last'],
      ],
    );
    assert.match(errorsOf(found[1]!).join('\n'), /^r\.yaml:3:\d+: resources\[1\]\.connect_timeout: [^\n]*$/);
    assert.match(errorsOf(found[2]!).join('\n'), /^r\.yaml:4:\d+: resources\[2\]\.type: [^\n]*NEVER[^\n]*$/);
    assert.match(
      errorsOf(found[3]!).join('\n'),
      /^r\.yaml:5:\d+: resources\[3\]: is no proxy\.config\.cluster\.v3\.Cluster$/,
    );
    assert.match(errorsOf(found[4]!).join('\n'), /^r\.yaml:6:\d+: resources\[4\]\./);
    const [first] = found;
    assert.ok(first?.isGood && first.resource.name === 'first' && first.message.length > 10);
  });

  it('may bring a cluster that has nothing on purpose, but for the type that has one name', (t) => {
    const types = ['STATIC', 'STRICT_DNS', 'LOGICAL_DNS'].map((type) => ({ '@type': CLUSTER, name: type, type }));
    const [hole, names, other] = read(t, DISCOVERABLE.clusters(), types);
    for (const { errors, warnings } of [hole!, names!].map((read) => ({ errors: errorsOf(read), ...read }))) {
      assert.deepEqual([errors, warnings], [[], []]);
    }
    assert.match(errorsOf(other!).join(), /: a cluster of type LOGICAL_DNS needs exactly one member/);
  });

  it('cannot be read as a whole where it is no response', (t) => {
    for (const text of ['{', 'version_info: {}', '{resources: 5}', 'odd: 1']) {
      const opened = openText(t, DISCOVERABLE.clusters(), text, new UnknownFieldPolicy('reject'));
      assert.ok('faults' in opened && opened.faults.length > 0, text);
      assert.match(opened.faults[0]!, /r\.yaml:1:/);
    }
    const gone = openResponseFile('/nowhere/at/all.yaml', DISCOVERABLE.clusters(), TOLERANT);
    assert.ok('faults' in gone && /no such file/.test(gone.faults.join()));
  });

  it('has unknown fields of a resource refuse that one where they are rejected', (t) => {
    const clusters = [cluster('first'), cluster('second', { odd: 1 })];
    const rejected = read(t, DISCOVERABLE.clusters(), clusters, new UnknownFieldPolicy('reject'));
    assert.deepEqual(errorsOf(rejected[0]!), []);
    assert.match(errorsOf(rejected[1]!).join(), /r\.yaml:3:\d+: resources\[1\]\.odd/);
    const warned = read(t, DISCOVERABLE.clusters(), clusters, new UnknownFieldPolicy('warn'));
    assert.deepEqual([warned[0]!.isGood, warned[0]!.warnings], [true, []]);
    assert.ok(warned[1]!.isGood);
    assert.match(warned[1]!.warnings.join(), /resources\[1\]\.odd/);
  });

  it('may be of the older generation', (t) => {
    const older = { ...cluster('first'), '@type': 'type.googleapis.com/envoy.api.v2.Cluster' };
    const [found] = read(t, DISCOVERABLE.clusters(), [older]);
    assert.ok(found?.isGood && found.resource.name === 'first');
  });

  it('tells of deprecated fields, and of extensions that are disabled', (t) => {
    const [old] = read(t, DISCOVERABLE.clusters(), [cluster('first', { max_requests_per_connection: 3 })]);
    assert.ok(old?.isGood);
    assert.deepEqual([...old.deprecatedFields], [['Cluster.max_requests_per_connection', 1]]);
    const { disabled } = disableExtensions(['envoy.clusters/envoy.cluster.static'], EXTENSIONS);
    const strict = mustLoad(DYNAMIC, { disabledExtensions: disabled }).discoverable;
    const refused = read(t, strict.clusters(), [cluster('first'), cluster('second', { type: 'STRICT_DNS' })]);
    assert.match(errorsOf(refused[0]!).join(), /resources\[0\]\.type: stands for "proxy\.cluster\.static"/);
    assert.deepEqual(errorsOf(refused[1]!), []);
  });

  it('has listeners lead to clusters that there are, unless their tables say otherwise, and to any in TCP', (t) => {
    const tcp = {
      '@type': LISTENER,
      ...listenerWith(
        [
          {
            name: 'tcp',
            typed_config: {
              '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
              stat_prefix: 'x',
              cluster: 'later',
            },
          },
        ],
        { name: 'tcp' },
      ),
    };
    const found = read(t, DISCOVERABLE.listeners(['there']), [
      routedTo('good', 'there'),
      routedTo('wrong', 'theere'),
      routedTo('lenient', 'later', { validate_clusters: false }),
      tcp,
    ]);
    assert.deepEqual(
      found.map(({ name, isGood }) => `${name} ${isGood}`),
      ['good true', 'wrong false', 'lenient true', 'tcp true'],
    );
    assert.match(errorsOf(found[1]!).join(), /cluster "theere" does not exist; did you mean "there"\?$/);
  });

  it('holds no listener without a name', (t) => {
    const [found] = read(t, DISCOVERABLE.listeners(['there']), [routedTo('', 'there')]);
    assert.deepEqual(
      errorsOf(found!).map((error) => error.replace(/^\S+ /, '')),
      ['resources[0].name: is required of a listener that discovery brings'],
    );
  });
});

describe('DNS caches of clusters that come by discovery', () => {
  const forward = (name: string, seconds: number): JsonObject => ({
    '@type': CLUSTER,
    name,
    lb_policy: 'CLUSTER_PROVIDED',
    cluster_type: {
      name: 'envoy.clusters.dynamic_forward_proxy',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig',
        dns_cache_config: { name: 'shared', dns_refresh_rate: `${seconds}s` },
      },
    },
  });

  it('agree where they go by one name in one response, and may be others in the next', (t) => {
    const found = read(t, DISCOVERABLE.clusters(), [forward('one', 5), forward('two', 6), forward('three', 5)]);
    assert.deepEqual(
      found.map(({ isGood }) => isGood),
      [true, false, true],
    );
    assert.match(errorsOf(found[1]!).join(), /resources\[1\]\.\S*dns_cache_config/);
    assert.deepEqual(
      read(t, DISCOVERABLE.clusters(), [forward('one', 6)]).map(({ isGood }) => isGood),
      [true],
    );
  });
});

describe('a resource that comes again', () => {
  const cluster = (fields: JsonObject = {}): JsonObject => ({ '@type': CLUSTER, ...clusterNamed('web'), ...fields });

  function fingerprint(t: TestContext, resource: JsonObject, type = DISCOVERABLE.clusters()): string | undefined {
    const opened = openText(t, type, textOf([resource]), new UnknownFieldPolicy('warn'));
    assert.ok('offered' in opened);
    return [...opened.offered()][0]!.fingerprint();
  }

  it('has the same fingerprint, unless it or the bootstrap is another, or something was wrong with its text', (t) => {
    const known = fingerprint(t, cluster());
    assert.ok(known !== undefined);
    assert.equal(fingerprint(t, cluster()), known);
    assert.notEqual(fingerprint(t, cluster({ connect_timeout: '3s' })), known);
    assert.notEqual(fingerprint(t, cluster(), mustLoad(DYNAMIC).discoverable.clusters()), known);
    assert.equal(fingerprint(t, cluster({ unheard_of: 1 })), undefined);
    assert.equal(fingerprint(t, { '@type': LISTENER, name: 'web' }), undefined);
    // Their routes are held against the clusters that there are.
    const listeners = openText(t, DISCOVERABLE.listeners([]), textOf([{ '@type': LISTENER, name: 'web' }]));
    assert.ok('offered' in listeners);
    assert.equal([...listeners.offered()][0]!.fingerprint(), undefined);
  });

  it('has one that goes by its bytes and its type where a server sends it', () => {
    const type = DISCOVERABLE.clusters();
    const offer = (typeUrl: string, bytes: readonly number[]): string | undefined => {
      const raw = { name: 'a', version: '', typeUrl, bytes: new Uint8Array(bytes), ttlMs: undefined };
      return offerRawResource(raw, 'resources[0]', type, TOLERANT).fingerprint();
    };
    const known = offer(CLUSTER, [10, 1, 97]);
    assert.ok(known !== undefined);
    assert.equal(offer(CLUSTER, [10, 1, 97]), known);
    assert.notEqual(offer(CLUSTER, [10, 1, 98]), known);
    assert.notEqual(offer('type.googleapis.com/envoy.api.v2.Cluster', [10, 1, 97]), known);
  });

  it('stands alone unless something is said of it, or it shares a DNS cache with others', (t) => {
    const dnsCache = {
      '@type': CLUSTER,
      name: 'forward',
      lb_policy: 'CLUSTER_PROVIDED',
      cluster_type: {
        name: 'envoy.clusters.dynamic_forward_proxy',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig',
          dns_cache_config: { name: 'shared' },
        },
      },
    };
    const found = read(
      t,
      DISCOVERABLE.clusters(),
      [cluster(), dnsCache, cluster({ unheard_of: 1 })],
      new UnknownFieldPolicy('warn'),
    );
    assert.deepEqual(
      found.map((each) => each.isGood && each.standsAlone),
      [true, false, false],
    );
  });
});

describe('a bootstrap with dynamic resources', () => {
  it('says where they come from, and needs to say who asks', () => {
    const { dynamicResources } = mustLoad(DYNAMIC);
    const watchedFolder = undefined;
    assert.deepEqual(dynamicResources.clusters?.origin, {
      kind: 'file',
      path: '/nowhere/response.yaml',
      watchedFolder,
    });
    assert.deepEqual(dynamicResources.listeners?.initialFetchTimeoutMs, 15_000);
    assert.deepEqual(mustLoad({}).dynamicResources, {
      clusters: undefined,
      listeners: undefined,
      aggregated: undefined,
    });
  });
});
