// A configuration in which a listener differs in filter chains alone: connections of the chains that stay go on, those of the
// others drain, and the listener itself is the one that it was.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket, type TcpSocketConnectOpts } from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import type { Bootstrap } from '../../../src/library/index.ts';
import {
  httpFilter,
  type Json,
  type JsonObject,
  listenerWith,
  socketAddress,
  tcpFilter,
} from '../../support/bootstrap.ts';
import { CertificateFolder } from '../../support/certificates.ts';
import { bootstrapOf, clusterAt, createProxy } from '../../support/embedded.ts';
import { untilEqual } from '../../support/eventually.ts';
import { shownSubject, tlsClient } from '../../support/tls-client.ts';
import { pair } from '../../support/tls-config.ts';
import { copyPair, type PairOfFiles, pairIn } from '../../support/tls-files.ts';
import { WireClient, WireUpstream } from '../../support/wire.ts';

type WeirProxy = Awaited<ReturnType<typeof createProxy>>;

/** Clients of which each has a chain of its own. */
const ONE = '127.0.0.81';
const OTHER = '127.0.0.82';
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

function chain(ip: string, filters: readonly Json[], fields: JsonObject = {}): JsonObject {
  const match = { source_prefix_ranges: [{ address_prefix: ip, prefix_len: 32 }] };
  return { name: ip, filter_chain_match: match, filters, ...fields };
}

function saying(body: string, fields: JsonObject = {}): JsonObject {
  const routes = [
    { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: body } }, ...fields },
  ];
  return httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
}

function limitOf(connections: number): JsonObject {
  const type = 'type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit';
  return { name: 'limit', typed_config: { '@type': type, stat_prefix: 'few', max_connections: connections } };
}

function withChains(
  chains: readonly JsonObject[],
  fields: JsonObject = {},
  clusters: readonly JsonObject[] = [],
): Bootstrap {
  const address = socketAddress('127.0.0.1', 0);
  return bootstrapOf(
    [listenerWith([], { name: 'main', address, stat_prefix: 'main', filter_chains: chains, ...fields })],
    [...clusters],
  ) as Bootstrap;
}

function from(ip: string, proxy: WeirProxy): WireClient {
  return new WireClient(proxy.listeners.get('main')!.port, '127.0.0.1', ip);
}

async function ask(client: WireClient): Promise<{ readonly body: string; readonly isLast: boolean }> {
  const { head, body } = await client.write(GET).response();
  return { body, isLast: /^connection: close\r$/im.test(head) };
}

function stat(proxy: WeirProxy, name: string): number | undefined {
  return proxy.stats.value(`listener_manager.${name}`);
}

test('connections of chains that stay go on, those of others end, and new ones meet the new chains', async () => {
  const options = { concurrency: 2, drainStrategy: 'immediate' } as const;
  await using proxy = await createProxy(withChains([chain(ONE, [saying('a')]), chain(OTHER, [saying('b')])]), options);
  const { port } = proxy.listeners.get('main')!;
  const kept = Array.from({ length: 8 }, () => from(ONE, proxy));
  const former = Array.from({ length: 8 }, () => from(OTHER, proxy));
  for (const client of kept) assert.deepEqual(await ask(client), { body: 'a', isLast: false });
  for (const client of former) assert.deepEqual(await ask(client), { body: 'b', isLast: false });

  // In another order, too.
  await proxy.applyBootstrap(withChains([chain(OTHER, [saying('B')]), chain(ONE, [saying('a')])]));
  assert.deepEqual(
    ['listener_in_place_updated', 'listener_modified', 'listener_added', 'total_listeners_draining'].map((name) =>
      stat(proxy, name),
    ),
    [1, 1, 1, 0],
  );
  assert.equal(stat(proxy, 'total_filter_chains_draining'), 1);
  assert.equal(proxy.listeners.get('main')!.port, port);
  for (const client of kept) assert.deepEqual(await ask(client), { body: 'a', isLast: false });
  for (const client of former) assert.deepEqual(await ask(client), { body: 'b', isLast: true });
  for (const client of former) assert.equal(await client.rest(), '');
  for (let again = 0; again < 8; again += 1) {
    const client = from(OTHER, proxy);
    assert.deepEqual(await ask(client), { body: 'B', isLast: false });
    client.close();
  }
  await untilEqual(0, () => stat(proxy, 'total_filter_chains_draining'), 'filter chains that drain');
  for (const client of kept) assert.deepEqual(await ask(client), { body: 'a', isLast: false });
  await untilEqual(8, () => proxy.stats.value('listener.main.downstream_cx_active'), 'connections');
  for (const client of kept) client.close();
});

test('a chain comes and goes, also the default one, and connections that are left behind the drain time are cut', async (t) => {
  const sockets: Socket[] = [];
  const echo = createServer((socket) => void sockets.push(socket.on('error', () => {}).pipe(socket))).listen(
    0,
    '127.0.0.1',
  );
  t.after(() => {
    echo.close();
    for (const socket of sockets) socket.destroy();
  });
  await once(echo, 'listening');
  const clusters = [clusterAt('echo', (echo.address() as { port: number }).port) as JsonObject];
  const tcp = tcpFilter({ cluster: 'echo', stat_prefix: 'raw' });
  const one = chain(ONE, [tcp]);
  await using proxy = await createProxy(withChains([one], {}, clusters), { drainTimeS: 0 });
  const kept = from(ONE, proxy).write('kept');
  await kept.until('kept');
  assert.equal(await from(OTHER, proxy).rest(), '');
  await untilEqual(1, () => proxy.stats.value('listener.main.no_filter_chain_match'), 'connections without a chain');

  await proxy.applyBootstrap(withChains([one], { default_filter_chain: { filters: [tcp] } }, clusters));
  assert.equal(stat(proxy, 'total_filter_chains_draining'), 0);
  const guest = from(OTHER, proxy).write('guest');
  await guest.until('guest');
  assert.equal(kept.isEnded, false);

  await proxy.applyBootstrap(withChains([one], {}, clusters));
  assert.equal(await guest.rest(), '');
  await untilEqual(0, () => stat(proxy, 'total_filter_chains_draining'), 'filter chains that drain');
  assert.equal(await from(OTHER, proxy).rest(), '');
  await kept.write('again').until('again');
  assert.equal(stat(proxy, 'listener_in_place_updated'), 2);
  kept.close();
});

test('a chain that stays keeps the places under its connection limit', async () => {
  const limited = chain(ONE, [limitOf(1), saying('a')]);
  await using proxy = await createProxy(withChains([limited, chain(OTHER, [saying('b')])]), { concurrency: 2 });
  const first = from(ONE, proxy);
  await ask(first);
  await proxy.applyBootstrap(withChains([limited]));
  assert.equal(stat(proxy, 'listener_in_place_updated'), 1);
  assert.equal(await from(ONE, proxy).rest(), '');
  first.close();
  await untilEqual(0, () => proxy.stats.value('connection_limit.few.active_connections'), 'connections');
  const next = from(ONE, proxy);
  assert.equal((await ask(next)).body, 'a');
  next.close();
});

test('a secured chain that stays goes on, and is shown new certificates at its new place', async () => {
  using folder = new CertificateFolder();
  for (const name of ['one', 'two', 'three']) await folder.make(name, { altNames: 'DNS:a.example' });
  const files = (name: string): PairOfFiles => ({
    certificatePath: path.join(folder.path, `${name}.pem`),
    keyPath: path.join(folder.path, `${name}.key`),
  });
  const shown = pairIn(path.join(folder.path, 'shown'));
  copyPair(shown, files('one'));
  const secured = (ip: string, of: PairOfFiles, body: string): JsonObject => {
    const type = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext';
    const typed_config = { '@type': type, common_tls_context: { tls_certificates: [pair(of) as JsonObject] } };
    return chain(ip, [saying(body)], { transport_socket: { name: 'tls', typed_config } });
  };
  const stays = secured(ONE, shown, 'a');
  await using proxy = await createProxy(withChains([stays, secured(OTHER, files('three'), 'b')]), { concurrency: 2 });
  const { port } = proxy.listeners.get('main')!;
  const from = (localAddress: string): ConnectionOptions & Pick<TcpSocketConnectOpts, 'localAddress'> => {
    return { rejectUnauthorized: false, localAddress };
  };
  const client = tlsClient(port, from(ONE)).setEncoding('latin1');
  await once(client, 'secureConnect');
  await proxy.applyBootstrap(withChains([secured(OTHER, files('three'), 'c'), stays]));
  assert.equal(stat(proxy, 'listener_in_place_updated'), 1);
  const subjectFor = (ip: string): Promise<string> => shownSubject(port, from(ip));
  copyPair(shown, files('two'));
  await untilEqual('CN=two', () => subjectFor(ONE), 'the certificate of the chain that stays');
  assert.equal(await subjectFor(OTHER), 'CN=three');
  client.write(GET);
  assert.match(String(await once(client, 'data')), /^HTTP\/1\.1 200 OK/);
  client.destroy();
});

test('what differs in anything else is a listener of its own, whose former connections drain', async () => {
  const chains = [chain(ONE, [saying('a')])];
  await using proxy = await createProxy(withChains(chains), { drainStrategy: 'immediate' });
  const client = from(ONE, proxy);
  assert.equal((await ask(client)).isLast, false);
  await proxy.applyBootstrap(withChains(chains, { per_connection_buffer_limit_bytes: 4096 }));
  assert.equal(stat(proxy, 'listener_in_place_updated'), 0);
  assert.equal((await ask(client)).isLast, true);
});

test('settings of filters by route are a difference, too', async () => {
  const type = 'type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault';
  const fault = { name: 'fault', typed_config: { '@type': type } };
  const aborting = (http_status: number): Bootstrap => {
    const abort = { http_status, percentage: { numerator: 100, denominator: 'HUNDRED' } };
    const said = { typed_per_filter_config: { fault: { '@type': type, abort } } };
    const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 }, ...said }];
    const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
    const router = {
      name: 'router',
      typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
    };
    return withChains([chain(ONE, [httpFilter({ route_config, http_filters: [fault, router] })])]);
  };
  await using proxy = await createProxy(aborting(503));
  const statusNow = async (): Promise<number> => {
    const client = from(ONE, proxy);
    const { status } = await client.write(GET).response();
    client.close();
    return status;
  };
  assert.equal(await statusNow(), 503);
  await proxy.applyBootstrap(aborting(418));
  assert.equal(await statusNow(), 418);
});

test('a hundred updates under load fail no request, and end no connection of a chain that stays', async () => {
  const bootstrap = (round: number): Bootstrap =>
    withChains([chain(ONE, [saying('a')]), chain(OTHER, [saying(`round ${round}`)])]);
  await using proxy = await createProxy(bootstrap(0), { concurrency: 2, drainTimeS: 0 });
  let isOver = false;
  const keep = async (): Promise<number> => {
    const client = from(ONE, proxy);
    let requests = 0;
    for (; !isOver; requests += 1) assert.deepEqual(await ask(client), { body: 'a', isLast: false });
    client.close();
    return requests;
  };
  const load = [keep(), keep(), keep()];
  for (let round = 1; round <= 100; round += 1) {
    await proxy.applyBootstrap(bootstrap(round));
    const client = from(OTHER, proxy);
    assert.equal((await ask(client)).body, `round ${round}`);
    client.close();
  }
  isOver = true;
  for (const requests of await Promise.all(load)) assert.ok(requests > 0);
  await untilEqual(0, () => stat(proxy, 'total_filter_chains_draining'), 'filter chains that drain');
  assert.equal(stat(proxy, 'listener_in_place_updated'), 100);
});

test('a proxy that ends while filter chains leave has their requests end first', async (t) => {
  const upstream = await WireUpstream.start(() => {});
  t.after(() => upstream.close());
  const clusters = [clusterAt('slow', upstream.port) as JsonObject];
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'slow' } }];
  const slow = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const stays = chain(ONE, [saying('a')]);
  const proxy = await createProxy(withChains([stays, chain(OTHER, [slow])], {}, clusters));
  const [idle, client] = [from(OTHER, proxy), from(OTHER, proxy)];
  client.write(GET);
  await untilEqual(1, () => upstream.sockets.length, 'requests under way');
  await untilEqual(2, () => proxy.stats.value('listener.main.downstream_cx_active'), 'connections');
  await proxy.applyBootstrap(withChains([stays], {}, clusters));
  assert.equal(stat(proxy, 'total_filter_chains_draining'), 1);
  const closed = proxy.close({ graceMs: 60_000 });
  assert.equal(await idle.rest(), '');
  upstream.sockets[0]!.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  const { head, body } = await client.response();
  assert.equal(body, 'ok');
  assert.match(head, /^connection: close\r$/im);
  await closed;
});
