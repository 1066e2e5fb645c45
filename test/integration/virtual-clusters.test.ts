// Stats of virtual clusters and of routes with a prefix, in the real program.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const VHOST = 'vhost.shop.';
const CART = `${VHOST}vcluster.cart.`;
const OTHER = `${VHOST}vcluster.other.`;
const ROUTE = `${VHOST}route.buy.`;

/** Answers 200, or what the path's end says; at `/silent` not at all. */
function answer(head: string): string {
  const path = head.split(' ')[1]!;
  if (path.endsWith('/silent')) return '';
  const status = /\/(\d{3})$/.exec(path)?.[1] ?? '200';
  return `HTTP/1.1 ${status} X\r\ncontent-length: 0\r\n\r\n`;
}

function textOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .toSorted()
    .join(', ');
}

describe('requests of a virtual host with virtual clusters', () => {
  let upstream: WireUpstream;
  let weir: WeirProcess;
  let port: number;
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-virtual-clusters-'));
  const log = path.join(folder, 'access.log');

  before(async () => {
    upstream = await WireUpstream.start((socket) => {
      socket.on('data', (bytes) => socket.write(answer(bytes.toString('latin1'))));
    });
    const prefixed = (name: string, value: string): JsonObject => ({
      name,
      headers: [{ name: ':path', string_match: { prefix: value } }],
    });
    const retried = { cluster: 'web', retry_policy: { retry_on: '5xx', num_retries: 1 } };
    const short = { cluster: 'web', timeout: '0.5s' };
    const host = {
      name: 'shop',
      domains: ['*'],
      virtual_clusters: [prefixed('cart', '/cart'), prefixed('never', '/cart/items')],
      routes: [
        { match: { path: '/cart/gone' }, direct_response: { status: 410 } },
        { match: { path: '/cart/silent' }, stat_prefix: 'buy', route: short },
        { match: { prefix: '/cart' }, stat_prefix: 'buy', route: retried },
        { match: { prefix: '/' }, route: { cluster: 'web' } },
      ],
    };
    const plain = { ...host, name: 'plain', domains: ['plain'], virtual_clusters: [] };
    const manager = httpFilter({
      route_config: {
        virtual_hosts: [host, { ...plain, routes: [{ match: { prefix: '/' }, route: { cluster: 'web' } }] }],
      },
      access_log: [
        {
          name: 'envoy.access_loggers.file',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
            path: log,
            log_format: { text_format_source: { inline_string: '%REQ(:PATH)% %VIRTUAL_CLUSTER_NAME%\n' } },
          },
        },
      ],
    });
    const endpoint = { endpoint: { address: socketAddress('127.0.0.1', upstream.port) } };
    const load_assignment = { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] };
    weir = await startWeir({
      args: ['--file-flush-interval-msec', '20'],
      configYaml: JSON.stringify({
        admin: { address: socketAddress('127.0.0.1', 0) },
        stats_flush_on_admin: true,
        static_resources: {
          listeners: [listenerWith([manager], { address: socketAddress('127.0.0.1', 0) })],
          clusters: [clusterNamed('web', { load_assignment })],
        },
      }),
    });
    port = (await weir.listeners()).get('main')!.port;
  });

  after(async () => {
    await weir?.stop();
    await upstream?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function ask(target: string, host = 'h'): Promise<number> {
    const client = new WireClient(port);
    const { status } = await client.write(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\n\r\n`).response();
    client.close();
    return status;
  }

  /** What has been counted of all stats below a prefix since they were asked for last, without those that have not. */
  const former = new Map<string, number>();
  async function news(prefix: string): Promise<string> {
    const found = [...(await counted())]
      .filter(([name, value]) => name.startsWith(prefix) && value !== (former.get(name) ?? 0))
      .map(([name, value]) => [name.slice(prefix.length), value - (former.get(name) ?? 0)] as const);
    return textOf(Object.fromEntries(found));
  }

  async function counted(): Promise<Map<string, number>> {
    const { stats } = JSON.parse(await weir.admin('/stats?format=json')) as {
      stats: { name?: string; value: number }[];
    };
    return new Map(stats.flatMap(({ name, value }) => (name === undefined ? [] : [[name, value] as const])));
  }

  async function settle(expected: Readonly<Record<string, Record<string, number>>>): Promise<void> {
    for (const [prefix, counts] of Object.entries(expected))
      await untilEqual(textOf(counts), () => news(prefix), prefix);
    for (const [name, value] of await counted()) former.set(name, value);
  }

  const ok = { upstream_rq_total: 1, upstream_rq_completed: 1, upstream_rq_2xx: 1, upstream_rq_200: 1 };

  it('are counted by the first that takes them, and by their route', async () => {
    assert.equal(await ask('/cart/items'), 200);
    await settle({ [CART]: ok, [ROUTE]: ok, [OTHER]: {}, [`${VHOST}vcluster.never.`]: {} });
  });

  it('that none takes are counted together', async () => {
    assert.equal(await ask('/about'), 200);
    await settle({ [OTHER]: ok, [CART]: {}, [ROUTE]: {} });
  });

  it('are counted with each retry', async () => {
    assert.equal(await ask('/cart/503'), 503);
    const counts = {
      upstream_rq_total: 2,
      upstream_rq_completed: 1,
      upstream_rq_5xx: 1,
      upstream_rq_503: 1,
      upstream_rq_retry: 1,
      upstream_rq_retry_limit_exceeded: 1,
    };
    await settle({ [CART]: counts, [ROUTE]: counts });
  });

  it('are counted when their time is over, and by what the client is told', async () => {
    assert.equal(await ask('/cart/silent'), 504);
    const counts = {
      upstream_rq_total: 1,
      upstream_rq_completed: 1,
      upstream_rq_5xx: 1,
      upstream_rq_504: 1,
      upstream_rq_timeout: 1,
    };
    await settle({ [CART]: counts, [ROUTE]: counts });
  });

  it('that go nowhere, and those of other virtual hosts, are not', async () => {
    assert.equal(await ask('/cart/gone'), 410);
    assert.equal(await ask('/cart', 'plain'), 200);
    assert.equal(await ask('/about'), 200);
    await settle({ [OTHER]: ok, [CART]: {}, [ROUTE]: {}, 'vhost.plain.': {} });
  });

  it('have their times recorded', async () => {
    const isRecorded = async (): Promise<boolean> => {
      const lines = (await weir.admin('/stats')).split('\n');
      return [CART, ROUTE, OTHER].every((scope) =>
        lines.some((line) => line.startsWith(`${scope}upstream_rq_time: P0(`) && line.endsWith(')')),
      );
    };
    await untilEqual(true, isRecorded, 'all times are there');
  });

  it('have the name in their logs, unless they have none of their own', async () => {
    const lines = ['/cart/items cart', '/about -', '/cart/503 cart', '/cart/silent cart', '/cart/gone -', '/cart -'];
    const written = (): string => readFileSync(log, 'utf8').split('\n').slice(0, lines.length).join('\n');
    await untilEqual(lines.join('\n'), written, 'the log');
  });
});
