// The ways on which bytes pass unread, each with one connection open from end to end: a client, the data plane and an
// upstream, over real sockets.

import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { ForwardAction } from '../../src/snapshot/index.ts';
import {
  type ClusterOverrides,
  DataPlaneFixture,
  type FixtureOptions,
  forwardTo,
  loopback,
  routeFor,
} from './data-plane.ts';
import { eventually } from './eventually.ts';
import { SWITCHING, tunnelBench, UPGRADE, upgrade } from './tunnel-bench.ts';
import { WireClient, WireUpstream } from './wire.ts';

const CONNECT = 'CONNECT target.test:443 HTTP/1.1\r\nhost: target.test:443\r\n\r\n';
const ESTABLISHED = 'HTTP/1.1 200 OK\r\n\r\n';

export interface RawPath {
  readonly proxy: DataPlaneFixture;
  readonly wire: WireClient;
  /** The upstream's end; nobody reads it yet. */
  readonly server: Socket;
  /** Bytes of the client that were read. */
  readonly received: () => number;
  /** How often the client was held back, and let go on. */
  readonly paused: () => number;
  readonly resumed: () => number;
}

/** Opens one; it ends with the test. The cluster is `web`. */
export type OpenRawPath = (t: TestContext, options?: FixtureOptions) => Promise<RawPath>;

async function idleUpstream(t: TestContext): Promise<{ port: number; socket: Promise<Socket> }> {
  const arrived = Promise.withResolvers<Socket>();
  const upstream = await WireUpstream.start((socket) => arrived.resolve(socket));
  t.after(() => upstream.close());
  return { port: upstream.port, socket: arrived.promise };
}

async function throughTcpProxy(t: TestContext, options: FixtureOptions = {}): Promise<RawPath> {
  const upstream = await idleUpstream(t);
  const proxy = new DataPlaneFixture(options);
  proxy.cluster('web', [loopback(upstream.port)]);
  const wire = new WireClient(await proxy.tcp('web'));
  t.after(async () => {
    wire.close();
    await proxy.close();
  });
  const server = await upstream.socket;
  await eventually(() => proxy.clusterSamples('web', 'upstream_cx_connect_ms').length === 1, 'the connection');
  return {
    proxy,
    wire,
    server,
    received: () => proxy.tcpStat('downstream_cx_rx_bytes_total'),
    paused: () => proxy.tcpStat('downstream_flow_control_paused_reading_total'),
    resumed: () => proxy.tcpStat('downstream_flow_control_resumed_reading_total'),
  };
}

/** The tunnel of a CONNECT, or of an upgrade. @param action of its route. */
export async function openTunnel(
  t: TestContext,
  options: FixtureOptions & { readonly cluster?: ClusterOverrides } = {},
  action: Partial<ForwardAction> = {},
  isUpgrade = false,
): Promise<RawPath> {
  const upstream = await idleUpstream(t);
  const match = { kind: 'connect', value: '', caseSensitive: true } as const;
  const routes = [routeFor('', forwardTo('web', action), { match }), routeFor('/', forwardTo('web', action))];
  const settings = { upgrades: [upgrade('connect'), upgrade('websocket')] };
  const { proxy, client } = await tunnelBench(t, { ...options, upstreamPort: upstream.port, routes, settings });
  const wire = client().write(isUpgrade ? UPGRADE : CONNECT);
  const server = await upstream.socket;
  if (!action.terminatesConnect) {
    await once(server, 'data');
    server.pause();
    server.write(isUpgrade ? SWITCHING : ESTABLISHED);
  }
  await wire.until('\r\n\r\n');
  return {
    proxy,
    wire,
    server,
    received: () => proxy.httpStat('downstream_cx_rx_bytes_total'),
    paused: () => proxy.httpStat('downstream_flow_control_paused_reading_total'),
    resumed: () => proxy.httpStat('downstream_flow_control_resumed_reading_total'),
  };
}

export const RAW_PATHS: Readonly<Record<string, OpenRawPath>> = {
  'the TCP proxy': throughTcpProxy,
  'a CONNECT that ends here': (t, options) => openTunnel(t, options, { terminatesConnect: true }),
  'a CONNECT that is passed on': (t, options) => openTunnel(t, options),
  'an upgrade': (t, options) => openTunnel(t, options, {}, true),
};
