// Clusters that requests want (on-demand CDS) in the real program: asked for by the name that a header or a route says.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import {
  assignment,
  CLUSTER,
  cluster,
  ENDPOINTS,
  type Form,
  LISTENER,
  ofForm,
  upstreamSaying,
} from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import {
  AGGREGATED,
  CHANGES,
  type OnDemandProxy,
  OWN_STREAM,
  onDemandProxy,
  subscribed,
  unsubscribed,
} from '../support/on-demand-proxy.ts';
import { WireClient } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const TYPES = 'type.googleapis.com/envoy.extensions.filters.http';
const ROUTER = { name: 'router', typed_config: { '@type': `${TYPES}.router.v3.Router` } };

function onDemand(odcds: JsonObject | null, message = 'OnDemand'): JsonObject {
  return { '@type': `${TYPES}.on_demand.v3.${message}`, ...(odcds && { odcds }) };
}

function listener(odcds: JsonObject | null, routes: readonly JsonObject[]): JsonObject {
  const http_filters = [{ name: 'on_demand', typed_config: onDemand(odcds) }, ROUTER];
  const route_config = { validate_clusters: false, virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  return listenerWith([httpFilter({ stat_prefix: 'web', route_config, http_filters })], {
    name: 'in',
    address: ANY_PORT,
  });
}

const BY_HEADER: JsonObject = { match: { prefix: '/' }, route: { cluster_header: 'x-cluster' } };

function start(
  t: TestContext,
  form: Form,
  { odcds = {}, routes = [BY_HEADER] }: { odcds?: JsonObject | null; routes?: readonly JsonObject[] } = {},
): Promise<OnDemandProxy> {
  return onDemandProxy(t, form, (plane) => {
    plane.onDemand.add(CLUSTER);
    plane.set(LISTENER, '1', [listener(odcds && { source: ofForm(form), ...odcds }, routes)]);
  });
}

async function ask(port: number, name: string, path = '/'): Promise<string> {
  const client = new WireClient(port);
  const request = `GET ${path} HTTP/1.1\r\nhost: x\r\nx-cluster: ${name}\r\n\r\n`;
  const { status, body } = await client.write(request).response();
  client.close();
  return `${status} ${body}`.trim();
}

const timesAsked = (plane: ControlPlane, name: string): number =>
  subscribed(plane, CLUSTER).filter((asked) => asked === name).length;
const timesLeft = (plane: ControlPlane, name: string): number =>
  unsubscribed(plane, CLUSTER).filter((left) => left === name).length;

describe('clusters on demand', () => {
  for (const form of CHANGES) {
    it(`come when a request wants them, change and go: ${form.name}`, async (t) => {
      const { plane, weir, port } = await start(t, form);
      const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
      plane.set(CLUSTER, '2', [cluster('a', one)]);
      assert.equal(timesAsked(plane, 'a'), 0);
      assert.equal(await ask(port, 'a'), '200 one');
      assert.equal(await ask(port, 'a'), '200 one');
      assert.equal(timesAsked(plane, 'a'), 1);
      assert.equal(await ask(port, 'absent'), '503');
      await untilEqual(1, () => timesLeft(plane, 'absent'), 'one that is not there and asked for no longer');
      plane.set(CLUSTER, '3', [cluster('a', two)]);
      await untilEqual('200 two', () => ask(port, 'a'), 'the cluster as it is now');
      plane.set(CLUSTER, '4', []);
      await untilEqual('503', () => ask(port, 'a'), 'the end of the cluster');
      plane.set(CLUSTER, '5', [cluster('a', one)]);
      await untilEqual('200 one', () => ask(port, 'a'), 'the cluster that has come again');
      assert.deepEqual(plane.violations, []);
      assert.match(await weir.admin('/clusters'), /^a::added_via_api::true$/m);
    });
  }

  it('are asked for once, and serve when their endpoints are there', async (t) => {
    const { plane, port } = await start(t, AGGREGATED);
    const upstream = await upstreamSaying(t, 'eds');
    const eds = { type: 'EDS', load_assignment: null, eds_cluster_config: { eds_config: ofForm(AGGREGATED) } };
    plane.set(ENDPOINTS, '1', [assignment('a', upstream)]);
    plane.set(CLUSTER, '2', [cluster('a', 1, eds)]);
    const answers = Promise.all(Array.from({ length: 100 }, () => ask(port, 'a')));
    assert.deepEqual([...new Set(await answers)], ['200 eds']);
    assert.equal(timesAsked(plane, 'a'), 1);
  });

  it('are waited for no longer than the filter allows, and by clients that stay', async (t) => {
    const { plane, weir, port } = await start(t, OWN_STREAM, { odcds: { timeout: '1s' } });
    plane.isSilent = true;
    const leaving = new WireClient(port).write('GET / HTTP/1.1\r\nhost: x\r\nx-cluster: a\r\n\r\n');
    await untilEqual(1, () => weir.stat('http.web.downstream_rq_active'), 'a request that waits');
    leaving.close();
    assert.equal(await ask(port, 'a'), '503');
    await untilEqual(0, () => weir.stat('http.web.downstream_rq_active'), 'requests that are over');
    // Once for each of the two, where the machine is slow.
    await untilEqual(true, () => timesLeft(plane, 'a') >= 1, 'one that nobody waits for');
  });

  it('are wanted by routes that say so, and by no others', async (t) => {
    const per = (odcds: JsonObject | null): JsonObject => ({ on_demand: onDemand(odcds, 'PerRouteConfig') });
    const routes = [
      {
        match: { prefix: '/on' },
        route: { cluster: 'a' },
        typed_per_filter_config: per({ source: ofForm(OWN_STREAM) }),
      },
      { match: { prefix: '/' }, route: { cluster: 'a' } },
    ];
    const { plane, port } = await start(t, OWN_STREAM, { odcds: null, routes });
    plane.set(CLUSTER, '2', [cluster('a', await upstreamSaying(t, 'one'))]);
    assert.equal(await ask(port, '', '/off'), '503');
    assert.equal(timesAsked(plane, 'a'), 0);
    assert.equal(await ask(port, '', '/on'), '200 one');
    assert.equal(await ask(port, '', '/off'), '200 one');
  });

  it('are refused for themselves', async (t) => {
    const { plane, port } = await start(t, OWN_STREAM);
    plane.set(CLUSTER, '2', [cluster('a', 1, { connect_timeout: '-1s' })]);
    assert.equal(await ask(port, 'a'), '503');
    const refusals = (): string => plane.requests.map(({ error_detail: refusal }) => refusal?.message ?? '').join('\n');
    await untilEqual(true, () => /cluster a: resources\[0\]\.connect_timeout/.test(refusals()), 'a refusal');
  });
});
