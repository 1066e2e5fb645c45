// The rules of query parameters, one test for each, by whole answers of the admin interface over its small world.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdminServerOptions, ServerCommands } from '../../../src/admin/index.ts';
import { type RunningAdmin, startAdmin } from './fixture.ts';

interface Answer {
  readonly status: number;
  readonly body: string;
}

async function ask(server: RunningAdmin, target: string, method = 'GET', body?: string): Promise<Answer> {
  const response = await fetch(server.url + target, { method, ...(body === undefined ? {} : { body }) });
  return { status: response.status, body: await response.text() };
}

async function json(server: RunningAdmin, target: string): Promise<Record<string, unknown>[]> {
  const { status, body } = await ask(server, target);
  assert.equal(status, 200, body);
  return (JSON.parse(body) as { configs: Record<string, unknown>[] }).configs;
}

/** Without the commands that come with a server, an endpoint that uses another one fails. */
function commandsThat(commands: Partial<ServerCommands>): Partial<AdminServerOptions> {
  return { commands: commands as ServerCommands };
}

describe('query rule', () => {
  it('1: usedonly leaves out what was never written, in every format and form', async () => {
    await using server = await startAdmin();
    for (const rest of ['', '&format=json', '&format=prometheus', '&histogram_buckets=cumulative', '&filter=api|web']) {
      const all = (await ask(server, `/stats?x${rest}`)).body;
      const used = (await ask(server, `/stats?usedonly${rest}`)).body;
      assert.match(all, /api/, rest);
      assert.doesNotMatch(used, /api/, rest);
      assert.match(used, /web/, rest);
    }
  });

  it('2: filter matches anywhere in a name, and the whole of it between anchors', async () => {
    await using server = await startAdmin();
    const names = async (filter: string): Promise<string[]> =>
      [...(await ask(server, `/stats?filter=${encodeURIComponent(filter)}`)).body.matchAll(/^(\S+): /gm)].map(
        ([, name]) => name!,
      );
    assert.deepEqual(await names('rq_2'), ['cluster.web.upstream_rq_200']);
    assert.deepEqual(await names('^server.live$'), ['server.live']);
    assert.deepEqual(await names('^live$'), []);
  });

  it('3: histogram_buckets shows buckets in place of quantiles, together with usedonly, filter and JSON', async () => {
    await using server = await startAdmin();
    const target = '/stats?usedonly&filter=body_size&format=json&histogram_buckets=';
    const counts = async (form: string): Promise<number[]> => {
      const { stats } = JSON.parse((await ask(server, target + form)).body);
      const [{ name, buckets }] = stats[0].histograms;
      assert.equal(name, 'cluster.web.upstream_rq_body_size');
      return buckets.map(({ cumulative }: { cumulative: number }) => cumulative);
    };
    const cumulative = await counts('cumulative');
    assert.equal(cumulative.at(-1), 7);
    const disjoint = await counts('disjoint');
    assert.deepEqual(
      disjoint,
      cumulative.map((count, at) => count - (cumulative[at - 1] ?? 0)),
    );
  });

  it('4: text_readouts makes gauges of texts for Prometheus, which are 0 and have the text as a label', async () => {
    await using server = await startAdmin();
    const { body } = await ask(server, '/stats/prometheus?text_readouts&type=TextReadouts');
    assert.match(body, /^envoy_listener_manager_version\{.*text_value="a \\"quoted\\" <text>"\} 0$/m);
    assert.doesNotMatch((await ask(server, '/stats/prometheus')).body, /text_value/);
  });

  it('5: mask, resource and name_regex of /config_dump choose dumps, elements and names, also together', async () => {
    await using server = await startAdmin();
    const types = (configs: readonly Record<string, unknown>[]) => configs.map((config) => String(config['@type']));
    const masked = await json(server, '/config_dump?mask=bootstrap.node.id');
    assert.deepEqual(masked[0]!.bootstrap, { node: { id: 'node-1' } });
    const elements = await json(server, '/config_dump?resource=static_clusters');
    assert.ok(elements.length > 0);
    assert.ok(types(elements).every((type) => type.endsWith('ClustersConfigDump.StaticCluster')));
    const both = await json(server, '/config_dump?resource=static_clusters&mask=cluster.name');
    assert.deepEqual(
      both.map(({ cluster }) => Object.keys(cluster as object).filter((key) => key !== '@type')),
      both.map(() => ['name']),
    );
    const named = await json(server, '/config_dump?resource=static_clusters&mask=cluster.name&name_regex=^web$');
    assert.deepEqual(
      named.map(({ cluster }) => (cluster as { name: string }).name),
      ['web'],
    );
    const single = await ask(server, '/config_dump?resource=bootstrap');
    assert.notEqual(single.status, 200);
    const isEndpoints = (type: string): boolean => type.endsWith('EndpointsConfigDump');
    assert.equal(types(await json(server, '/config_dump')).some(isEndpoints), false);
    assert.equal(types(await json(server, '/config_dump?include_eds')).some(isEndpoints), true);
    assert.doesNotMatch((await ask(server, '/config_dump')).body, /"(?:private_key|password)": (?!"\[redacted\]"|\{)/);
  });

  it('6: mask of /init_dump names the component whose unready targets are shown', async () => {
    await using server = await startAdmin();
    const names = async (target: string): Promise<string[]> => {
      const { unready_targets_dumps: dumps = [] } = JSON.parse((await ask(server, target)).body);
      return (dumps as { name: string }[]).map(({ name }) => name.replace(/ \d+$/, ''));
    };
    const listener = 'init manager Listener-local-init-manager main';
    assert.deepEqual(await names('/init_dump'), [
      'init manager Server',
      listener,
      'init manager Cluster-init-manager web',
    ]);
    assert.deepEqual(await names('/init_dump?mask=listener'), [listener]);
    assert.deepEqual(await names('/init_dump?mask=route'), []);
  });

  it('8: inboundonly has /drain_listeners stop what is inbound alone', async () => {
    const drains: unknown[] = [];
    await using server = await startAdmin(commandsThat({ drainListeners: (drain) => void drains.push(drain) }));
    assert.deepEqual(await ask(server, '/drain_listeners', 'POST'), { status: 200, body: 'OK\n' });
    assert.deepEqual(await ask(server, '/drain_listeners?inboundonly', 'POST'), { status: 200, body: 'OK\n' });
    assert.deepEqual(
      drains.map((drain) => (drain as { inboundOnly: boolean }).inboundOnly),
      [false, true],
    );
    assert.equal((await ask(server, '/drain_listeners?inboundonly')).status, 400);
    assert.equal(drains.length, 2);
  });

  it('9: /hystrix_event_stream is there with its sink alone, and never says NaN', async () => {
    await using server = await startAdmin();
    const { status, body } = await ask(server, '/hystrix_event_stream');
    assert.equal(status, 200);
    assert.match(body, /^data: \{"type": "HystrixCommand"/);
    assert.doesNotMatch(body, /NaN/i);
    await using without = await startAdmin({ eventStream: undefined });
    assert.equal((await ask(without, '/hystrix_event_stream')).status, 404);
    assert.doesNotMatch((await ask(without, '/help')).body, /hystrix/);
    await using full = await startAdmin({ eventStream: { listen: () => undefined } });
    assert.equal((await ask(full, '/hystrix_event_stream')).status, 503);
  });

  it('10: /tap is there with a filter that takes its orders alone', async () => {
    const order =
      'config_id: edge\ntap_config: {match: {any_match: true}, output_config: {sinks: [{streaming_admin: {}}]}}';
    await using server = await startAdmin();
    const { status, body } = await ask(server, '/tap', 'POST', order);
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(JSON.parse(body)), ['http_buffered_trace']);
    await using without = await startAdmin({ tap: { isConfigured: false, begin: () => 'unknown-config-id' } });
    assert.equal((await ask(without, '/tap', 'POST', order)).status, 404);
    assert.doesNotMatch((await ask(without, '/help')).body, /\/tap/);
  });
});
