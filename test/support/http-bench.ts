// A data plane with one HTTP listener in front of one cluster, `web`, with clients that a test drives by bytes, and the
// balance of everything that is counted of both.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Random } from '../../src/base/random.ts';
import type {
  ForwardAction,
  HeaderEdits,
  HttpConnectionManagerSettings,
  RouteSnapshot,
} from '../../src/snapshot/index.ts';
import { type ClusterOverrides, DataPlaneFixture, directRoute, forwardTo, loopback, routeFor } from './data-plane.ts';
import type { ManualClock } from './manual-clock.ts';
import { WireClient, type WireUpstream } from './wire.ts';

export const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
/** Tells the client the flags of its response, in `x-flags`. */
export const TELL_FLAGS: HeaderEdits = {
  remove: [],
  add: [
    {
      name: 'x-flags',
      value: [{ operator: 'RESPONSE_FLAGS', args: [], maxLength: 0 }],
      action: 'append',
      keepsEmptyValue: true,
    },
  ],
};
export const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
/** How the body of a 503 begins that an upstream's failure has led to. */
export const RESET_BODY = 'upstream connect error or disconnect/reset before headers. reset reason: ';

export interface HttpBench {
  readonly proxy: DataPlaneFixture;
  readonly clock: ManualClock | undefined;
  readonly port: number;
  client(): WireClient;
}

export interface HttpBenchOptions {
  readonly upstream?: WireUpstream;
  /** Several hosts, in place of one. */
  readonly upstreams?: readonly WireUpstream[];
  readonly upstreamPort?: number;
  /** What the route asks for beside its timeout. */
  readonly route?: Partial<ForwardAction>;
  /** What the virtual host asks for. */
  readonly routeFields?: Partial<Omit<RouteSnapshot, 'action'>>;
  readonly cluster?: ClusterOverrides;
  readonly settings?: Partial<HttpConnectionManagerSettings>;
  readonly timeoutMs?: number;
  readonly clock?: ManualClock;
  readonly random?: Random;
  readonly localAddress?: string;
}

/** Ends with the test, and the upstream with it. */
export async function httpBench(t: TestContext, options: HttpBenchOptions): Promise<HttpBench> {
  const proxy = new DataPlaneFixture({
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...(options.random === undefined ? {} : { random: options.random }),
    ...(options.localAddress === undefined ? {} : { localAddress: options.localAddress }),
  });
  const ports = options.upstreams?.map(({ port }) => port) ?? [options.upstream?.port ?? options.upstreamPort ?? 1];
  proxy.cluster('web', ports.map(loopback), options.cluster);
  const action = forwardTo('web', { timeoutMs: options.timeoutMs ?? 15_000, ...options.route });
  const routes = [directRoute('/direct', 200, 'direct'), routeFor('/', action, options.routeFields)];
  const port = await proxy.http(routes, options.settings);
  const clients: WireClient[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    const closed = proxy.close();
    options.clock?.turn(1000);
    await closed;
    await options.upstream?.close();
    for (const upstream of options.upstreams ?? []) await upstream.close();
  });
  const client = (): WireClient => {
    const wire = new WireClient(port);
    clients.push(wire);
    return wire;
  };
  return { proxy, clock: options.clock, port, client };
}

/** Every stream and connection that began has ended, and is accounted for. */
export function assertBalanced(proxy: DataPlaneFixture): void {
  const http = proxy.httpStat;
  const answered = (['1xx', '2xx', '3xx', '4xx', '5xx'] as const).reduce(
    (sum, part) => sum + http(`downstream_rq_${part}`),
    0,
  );
  assert.equal(http('downstream_rq_total'), answered + http('downstream_rq_rx_reset') + http('downstream_rq_tx_reset'));
  assert.equal(http('downstream_rq_active'), 0);
  assert.equal(http('downstream_cx_total') - http('downstream_cx_destroy'), http('downstream_cx_active'));
  assert.equal(
    proxy.listenerStat('downstream_cx_total') - proxy.listenerStat('downstream_cx_destroy'),
    http('downstream_cx_active'),
  );
  const cluster = (stat: Parameters<typeof proxy.clusterStat>[1]): number => proxy.clusterStat('web', stat);
  assert.equal(cluster('upstream_cx_total') - cluster('upstream_cx_destroy'), cluster('upstream_cx_active'));
  assert.equal(cluster('upstream_rq_active'), 0);
  assert.equal(cluster('upstream_rq_pending_active'), 0);
  assert.equal(proxy.breakerCount('web', 4), 0);
  assert.equal(proxy.breakerCount('web', 8), 0);
  assert.equal(proxy.breakerCount('web', 12), 0);
  assert.equal(proxy.breakerCount('web', 0), cluster('upstream_cx_active'));
  assert.equal(proxy.dataPlane.readSlabBytes, 0);
}
