// A data plane by a clock that the test turns, in front of one cluster, `web`, with an HTTP/2 client of bare frames that has
// spoken and read what was said.

import type { TestContext } from 'node:test';
import { FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { ForwardAction, HttpConnectionManagerSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, forwardTo, loopback, routeFor } from './data-plane.ts';
import { eventually } from './eventually.ts';
import { FrameClient } from './http2-clients.ts';
import { GET, headers } from './http2-session.ts';
import { ManualClock } from './manual-clock.ts';
import { WireUpstream } from './wire.ts';

export interface Http2Bench {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  readonly clock: ManualClock;
}

export interface Http2BenchOptions {
  readonly upstreamPort?: number;
  readonly route?: Partial<ForwardAction>;
  /** What decides by chance; always 0 by default. */
  readonly chance?: number;
}

/** `/direct` is answered by the proxy. */
export async function http2Bench(
  t: TestContext,
  settings: Partial<HttpConnectionManagerSettings> = {},
  { upstreamPort = 1, route = {}, chance = 0 }: Http2BenchOptions = {},
): Promise<Http2Bench> {
  const clock = new ManualClock();
  const proxy = new DataPlaneFixture({ clock, random: { u32: () => chance } });
  proxy.cluster('web', [loopback(upstreamPort)]);
  const routes = [directRoute('/direct', 200, 'direct'), routeFor('/', forwardTo('web', route))];
  const port = await proxy.http(routes, settings);
  t.after(() => proxy.close());
  return { proxy, port, clock };
}

/** A request that the proxy answers. */
export function direct(streamId: number): Buffer {
  return headers(streamId, [...GET.slice(0, 3), [':path', '/direct']]);
}

/** Has had an answer on its first stream. */
export async function settledClient(
  t: TestContext,
  { proxy, port }: Pick<Http2Bench, 'proxy' | 'port'>,
): Promise<FrameClient> {
  const client = new FrameClient(t, port);
  client.acknowledge();
  client.send(direct(1));
  await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 1);
  await eventually(() => proxy.http2Stat('streams_active') === 0, 'no stream');
  return client;
}

/** Takes connections and requests, and says nothing. */
export async function silentUpstream(t: TestContext): Promise<{ port: number; asked: Promise<void> }> {
  const asked = Promise.withResolvers<void>();
  const upstream = await WireUpstream.start((socket) => void socket.once('data', () => asked.resolve()));
  t.after(() => upstream.close());
  return { port: upstream.port, asked: asked.promise };
}
