// Routes that ask for hosts by their metadata, by bytes on the wire.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { SubsetSettings } from '../../src/snapshot/index.ts';
import { clusterNamed, httpFilter, listenerWith, ROUTER, socketAddress } from '../support/bootstrap.ts';
import { DataPlaneFixture, forwardTo, loopback, routeFor } from '../support/data-plane.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const SUBSETS: SubsetSettings = {
  selectors: [{ keys: ['stage'], fallback: 'cluster', fallbackKeys: [], isSingleHost: false }],
  fallback: 'none',
  defaultSubset: [],
  weighsLocalities: false,
  scalesLocalityWeights: false,
  panicModeAny: false,
  listAsAny: false,
  takesAlternatives: false,
  allowsRedundantKeys: false,
};

async function serve(t: TestContext, subsets: SubsetSettings) {
  const stages = ['prod', 'dev', 'prod'];
  const upstreams: WireUpstream[] = [];
  for (const [index] of stages.entries()) {
    upstreams.push(await WireUpstream.answering(`HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n${index}`));
  }
  const proxy = new DataPlaneFixture();
  proxy.cluster(
    'web',
    upstreams.map(({ port }) => loopback(port)),
    { subsets, subsetValues: stages.map((stage) => [{ key: 'stage', value: `"${stage}"`, elements: null }]) },
  );
  const asking = (stage: string) => forwardTo('web', { criteria: [['stage', `"${stage}"`]] });
  const entry = { requestEdits: null, responseEdits: null, hostRewrite: '' };
  const weightedClusters = {
    entries: [{ cluster: 'web', weight: 1, criteria: [['stage', '"dev"']] as const, ...entry }],
    totalWeight: 1,
    runtimeKeyPrefix: '',
  };
  const port = await proxy.http([
    routeFor('/prod', asking('prod')),
    routeFor('/dev', asking('dev')),
    routeFor('/test', asking('test')),
    routeFor('/weighted', forwardTo('', { weightedClusters })),
    routeFor('/', forwardTo('web')),
  ]);
  const client = new WireClient(port);
  t.after(async () => {
    client.close();
    await proxy.close();
    for (const upstream of upstreams) await upstream.close();
  });
  /** Bodies of some answers in ascending order, or the status. */
  const ask = async (path: string): Promise<string> => {
    const answers = new Set<string>();
    for (let request = 0; request < 6; request += 1) {
      client.write(`GET ${path} HTTP/1.1\r\nhost: h.example\r\n\r\n`);
      const { body, status } = await client.response();
      answers.add(status === 200 ? body : String(status));
    }
    return [...answers].sort().join();
  };
  return { proxy, ask };
}

test('a route goes to the hosts that say what it asks, and to none where nobody does', async (t) => {
  const { proxy, ask } = await serve(t, SUBSETS);
  assert.equal(await ask('/prod'), '0,2');
  assert.equal(await ask('/dev'), '1');
  assert.equal(await ask('/weighted'), '1');
  assert.equal(await ask('/test'), '503');
  assert.equal(await ask('/'), '503');
  assert.equal(proxy.clusterStat('web', 'lb_subsets_selected'), 18);
  assert.equal(proxy.clusterStat('web', 'lb_subsets_fallback'), 0);
});

test('a route whose subset does not exist may have any host', async (t) => {
  const { proxy, ask } = await serve(t, { ...SUBSETS, fallback: 'any-host' });
  assert.equal(await ask('/test'), '0,1,2');
  assert.equal(await ask('/'), '0,1,2');
  assert.equal(proxy.clusterStat('web', 'lb_subsets_selected'), 0);
  assert.equal(proxy.clusterStat('web', 'lb_subsets_fallback'), 12);
});

test('connections of the TCP proxy go to hosts that say what it asks', async (t) => {
  const stages = ['prod', 'dev', 'prod'];
  const upstreams: WireUpstream[] = [];
  for (const [index] of stages.entries()) upstreams.push(await WireUpstream.start((socket) => socket.end(`${index}`)));
  const proxy = new DataPlaneFixture();
  t.after(async () => {
    await proxy.close();
    for (const upstream of upstreams) await upstream.close();
  });
  for (const [name, lbPolicy] of [
    ['turns', 'ROUND_ROBIN'],
    ['hashed', 'RING_HASH'],
  ] as const) {
    proxy.cluster(
      name,
      upstreams.map(({ port }) => loopback(port)),
      {
        lbPolicy,
        subsets: SUBSETS,
        subsetValues: stages.map((stage) => [{ key: 'stage', value: `"${stage}"`, elements: null }]),
      },
    );
    const hostsOf = async (stage: string): Promise<string> => {
      const clusters = [{ cluster: name, weight: 1, criteria: [['stage', `"${stage}"`]] as const }];
      // Without addresses to hash, any host of the subset is drawn.
      const port = await proxy.tcp(name, { clusters, hashInputs: stage === 'dev' ? [{ kind: 'source-ip' }] : [] });
      const hosts = new Set<string>();
      for (let connection = 0; connection < 12; connection += 1) {
        const wire = new WireClient(port);
        hosts.add(await wire.rest());
        wire.close();
      }
      return [...hosts].sort().join();
    };
    assert.equal(await hostsOf('dev'), '1');
    assert.equal(await hostsOf('test'), '');
    for (const host of (await hostsOf('prod')).split(',')) assert.equal(stages[Number(host)], 'prod');
  }
});

test('what a filter has said of a request asks more of its hosts than the route, in the real program', async (t) => {
  const upstreams: WireUpstream[] = [];
  for (const name of ['prod-1', 'prod-2', 'dev-1']) {
    upstreams.push(await WireUpstream.answering(`HTTP/1.1 200 OK\r\ncontent-length: ${name.length}\r\n\r\n${name}`));
  }
  t.after(async () => {
    for (const upstream of upstreams) await upstream.close();
  });
  const tags = [
    { stage: 'prod', version: '1' },
    { stage: 'prod', version: '2' },
    { stage: 'dev', version: '1' },
  ];
  const lb_endpoints = upstreams.map(({ port }, index) => ({
    endpoint: { address: socketAddress('127.0.0.1', port) },
    metadata: { filter_metadata: { 'envoy.lb': tags[index]! } },
  }));
  const rule = (header: string, key: string) => ({
    header,
    on_header_present: { metadata_namespace: 'envoy.lb', key },
  });
  const filter = {
    name: 'envoy.filters.http.header_to_metadata',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config',
      request_rules: [rule('x-version', 'version'), rule('x-stage', 'stage')],
    },
  };
  const metadata_match = { filter_metadata: { 'envoy.lb': { stage: 'prod' } } };
  const routes = [
    { match: { prefix: '/asking' }, route: { cluster: 'web', metadata_match } },
    { match: { prefix: '/' }, route: { cluster: 'web' } },
  ];
  const manager = httpFilter({
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    http_filters: [filter, ROUTER],
  });
  const lb_subset_config = { fallback_policy: 'NO_FALLBACK', subset_selectors: [{ keys: ['stage', 'version'] }] };
  const cluster = { load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints }] }, lb_subset_config };
  const weir = await startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: {
        listeners: [listenerWith([manager], { address: socketAddress('127.0.0.1', 0) })],
        clusters: [clusterNamed('web', cluster)],
      },
    }),
  });
  t.after(() => weir.stop());
  const client = new WireClient((await weir.listeners()).get('main')!.port);
  t.after(() => client.close());
  const answerTo = async (path: string, ...lines: readonly string[]): Promise<string> => {
    client.write(`${[`GET ${path} HTTP/1.1`, 'host: h', ...lines].join('\r\n')}\r\n\r\n`);
    const { status, body } = await client.response();
    return status === 200 ? body : String(status);
  };
  assert.equal(await answerTo('/asking', 'x-version: 2'), 'prod-2');
  assert.equal(await answerTo('/asking', 'x-version: 1'), 'prod-1');
  assert.equal(await answerTo('/asking', 'x-version: 1', 'x-stage: dev'), 'dev-1');
  assert.equal(await answerTo('/', 'x-version: 1', 'x-stage: dev'), 'dev-1');
  assert.equal(await answerTo('/asking'), '503');
  assert.equal(await answerTo('/asking', 'x-version: 3'), '503');
});
