// Stats of responses by origin, canary and zone, and those that only stand beside others, in the real program.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { clusterNamed, httpFilter, type Json, type JsonObject, listenerWith } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const ANY_PORT = { socket_address: { address: '127.0.0.1', port_value: 0 } };

async function serve(
  t: TestContext,
  node: Json,
  args: readonly string[] = [],
  fields: JsonObject = {},
): Promise<WeirProcess> {
  const upstream = await WireUpstream.answering(OK);
  t.after(() => upstream.close());
  const address = { socket_address: { address: '127.0.0.1', port_value: upstream.port } };
  const canary = { filter_metadata: { 'envoy.lb': { canary: true } } };
  const locality = { locality: { zone: 'z-there' }, lb_endpoints: [{ endpoint: { address }, metadata: canary }] };
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const weir = await startWeir({
    args,
    configYaml: JSON.stringify({
      admin: { address: ANY_PORT },
      node,
      stats_flush_on_admin: true,
      static_resources: {
        listeners: [listenerWith([manager], { address: ANY_PORT, stat_prefix: 'front' })],
        clusters: [clusterNamed('web', { load_assignment: { cluster_name: 'web', endpoints: [locality] }, ...fields })],
      },
    }),
  });
  t.after(() => weir.stop());
  return weir;
}

async function ask(weir: WeirProcess, headers: string): Promise<void> {
  const client = new WireClient((await weir.listeners()).get('main')!.port);
  await client.write(`GET / HTTP/1.1\r\nhost: h\r\n${headers}\r\n`).response();
  client.close();
}

/** Waits until a histogram shows a sample: it lies between the least and the greatest of them. */
async function untilRecorded(weir: WeirProcess, name: string): Promise<void> {
  const isRecorded = async (): Promise<boolean> => {
    const line = (await weir.admin('/stats')).split('\n').find((text) => text.startsWith(`${name}: `));
    return line !== undefined && /P0\((?:nan|[\d.]+),[\d.]+\)/.test(line);
  };
  await untilEqual(true, isRecorded, name);
}

test('codes and times are counted by origin, of canaries and between zones', async (t) => {
  const weir = await serve(t, { locality: { zone: 'z-here' } });
  await ask(weir, '');
  await ask(weir, 'x-forwarded-for: 10.0.0.1\r\n');
  for (const prefix of ['internal.', 'external.']) {
    await weir.untilStat(`cluster.web.${prefix}upstream_rq_200`, 1);
    await weir.untilStat(`cluster.web.${prefix}upstream_rq_2xx`, 1);
    await weir.untilStat(`cluster.web.${prefix}upstream_rq_completed`, 1);
    await untilRecorded(weir, `cluster.web.${prefix}upstream_rq_time`);
  }
  for (const prefix of ['canary.', 'zone.z-here.z-there.']) {
    await weir.untilStat(`cluster.web.${prefix}upstream_rq_200`, 2);
    await weir.untilStat(`cluster.web.${prefix}upstream_rq_2xx`, 2);
    await untilRecorded(weir, `cluster.web.${prefix}upstream_rq_time`);
  }
});

test('time and sizes are recorded of clusters that want to know', async (t) => {
  const weir = await serve(t, {}, [], { track_cluster_stats: { timeout_budgets: true, request_response_sizes: true } });
  await ask(weir, '');
  await untilRecorded(weir, 'cluster.web.upstream_rq_timeout_budget_percent_used');
  await untilRecorded(weir, 'cluster.web.upstream_rq_timeout_budget_per_try_percent_used');
  for (const message of ['rq', 'rs']) {
    for (const part of ['headers_size', 'headers_count', 'body_size']) {
      await untilRecorded(weir, `cluster.web.upstream_${message}_${part}`);
    }
  }
});

test('the zone of the command line goes first, and without one nothing is counted by zones', async (t) => {
  const named = await serve(t, { locality: { zone: 'z-file' } }, ['--service-zone', 'z-line']);
  await ask(named, '');
  await named.untilStat('cluster.web.zone.z-line.z-there.upstream_rq_200', 1);
  const unnamed = await serve(t, {});
  await ask(unnamed, '');
  await unnamed.untilStat('cluster.web.canary.upstream_rq_200', 1);
  assert.doesNotMatch(await unnamed.admin('/stats'), /\.zone\./);
});

test('what cannot happen is shown as never having happened', async (t) => {
  const weir = await serve(t, {});
  assert.equal(await weir.stat('listener.front.main_thread.downstream_cx_total'), 0);
  assert.equal(await weir.stat('listener.front.main_thread.downstream_cx_active'), 0);
  assert.doesNotMatch(await weir.admin('/stats'), /cluster\.web\.http1\./);
  await ask(weir, '');
  for (const name of [
    'dropped_headers_with_underscores',
    'metadata_not_supported_error',
    'requests_rejected_with_underscores_in_headers',
    'response_flood',
  ]) {
    await weir.untilStat(`cluster.web.http1.${name}`, 0);
  }
});
