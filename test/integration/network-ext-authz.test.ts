// The network filter ext_authz through the whole proxy: what its service is told, and what becomes of connections.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { AuthorizationService } from '../support/authorization-service.ts';
import { type JsonObject, tcpFilter } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { HTTP2 } from '../support/guarded-proxy.ts';
import { errorsOf, filter, logTo, named, running, V2, V3 } from '../support/network-filter-proxy.ts';
import { tlsClient } from '../support/tls-client.ts';
import { pair, tlsSocket } from '../support/tls-config.ts';

const TYPE = `${V3}.ext_authz.v3.ExtAuthz`;
const NAMES = ['total', 'ok', 'denied', 'error', 'failure_mode_allowed', 'cx_closed', 'active'];

interface Options {
  readonly type?: string;
  readonly fields?: JsonObject;
  readonly chain?: JsonObject;
  readonly node?: JsonObject;
  /** Of a guard behind this one; without it there is none. */
  readonly second?: JsonObject;
}

/** A chain that is guarded by a service, before a TCP proxy. */
async function guarded(t: TestContext, { type = TYPE, fields = {}, chain = {}, node, second }: Options = {}) {
  const service = await AuthorizationService.start();
  t.after(async () => await service[Symbol.asyncDispose]());
  const web = await named(t, 'web');
  const log = logTo(
    t,
    '%RESPONSE_FLAGS% %CONNECTION_TERMINATION_DETAILS% %DYNAMIC_METADATA(envoy.filters.network.ext_authz:user)%',
  );
  const grpc_service = { envoy_grpc: { cluster_name: 'guard' }, timeout: '5s' };
  const guards = [filter(type, { stat_prefix: 'g', grpc_service, ...fields })];
  if (second !== undefined) guards.push(filter(type, { stat_prefix: 'second', grpc_service, ...second }));
  const bench = await running(t, [...guards, tcpFilter({ access_log: log.access_log })], {
    chain,
    ...(node !== undefined && { node }),
    clusters: { web: web.port, guard: service.port },
    clusterFields: { guard: HTTP2 },
  });
  const counts = (): number[] => NAMES.map((name) => bench.stat(`ext_authz.g.${name}`));
  return { ...bench, service, web, counts, log };
}

for (const [generation, type] of [
  ['v3', TYPE],
  ['v2', `${V2}.ext_authz.v2.ExtAuthz`],
] as const) {
  test(`asks a service of ${generation} about each connection, and does as it says`, async (t) => {
    const { client, service, web, counts, log, stat, proxy } = await guarded(t, {
      type,
      fields: { transport_api_version: generation.toUpperCase() },
    });
    service.answer = { status: {}, dynamic_metadata: { fields: { user: { string_value: 'ann' } } } };
    const first = client('127.0.0.91').write('early');
    assert.equal(await first.until('web:early'), 'web:early');
    assert.equal(service.last.path, `/envoy.service.auth.${generation}.Authorization/Check`);
    const { port } = proxy.listeners.get('main')!;
    const ends = service.last.attributes as Record<
      'source' | 'destination',
      { address: { socket_address: JsonObject } }
    >;
    assert.deepEqual(ends.source.address.socket_address, {
      address: '127.0.0.91',
      port_value: first.socket.localPort,
    });
    assert.deepEqual(ends.destination.address.socket_address, { address: '127.0.0.1', port_value: port });
    assert.equal('request' in service.last.attributes, false);
    service.answer = { status: { code: 7 } };
    assert.equal(await client().write('x').rest(), '');
    assert.deepEqual(counts(), [2, 1, 1, 0, 0, 1, 0]);
    assert.equal(web.sockets.length, 1);
    first.close();
    await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
    await proxy.close();
    assert.deepEqual(log.lines().toSorted(), ['- - ann', 'UAEX ext_authz_denied -']);
  });
}

test('tells the service of the certificate and the server name of its client', async (t) => {
  using folder = new CertificateFolder();
  const authority = await folder.make('ca', { isAuthority: true });
  const own = await folder.make('own', { issuer: authority, altNames: 'DNS:a.example' });
  const peer = await folder.make('peer', { issuer: authority, altNames: 'DNS:b.example,URI:spiffe://b' });
  const validation_context = { trusted_ca: { filename: authority.certificatePath } };
  const transport_socket = tlsSocket({ tls_certificates: [pair(own)], validation_context }) as JsonObject;
  const { proxy, service } = await guarded(t, {
    fields: { include_peer_certificate: true, include_tls_session: true },
    chain: { transport_socket },
  });
  const socket = tlsClient(proxy.listeners.get('main')!.port, {
    ca: authority.certificate,
    cert: peer.certificate,
    key: peer.key,
  });
  t.after(() => socket.destroy());
  const [greeting] = (await once(socket, 'data')) as [Buffer];
  assert.equal(greeting.toString(), 'web:');
  const { source, destination, tls_session } = service.last.attributes as Record<string, JsonObject>;
  assert.equal(source!.principal, 'spiffe://b');
  assert.match(decodeURIComponent(source!.certificate as string), /^-----BEGIN CERTIFICATE-----/);
  assert.equal(destination!.principal, 'a.example');
  assert.deepEqual(tls_session, { sni: 'a.example' });
});

for (const [name, failing] of [
  ['fails', { fails: 13 }],
  ['says what makes no sense', Buffer.from([0xff, 0xff, 0xff])],
] as const) {
  test(`closes a connection when the service ${name}, unless it may fail`, async (t) => {
    for (const failure_mode_allow of [false, true]) {
      const { client, service, counts } = await guarded(t, { fields: { failure_mode_allow } });
      service.answer = failing;
      if (failure_mode_allow) {
        assert.equal(await client().write('x').until('web:x'), 'web:x');
        assert.deepEqual(counts(), [1, 0, 0, 1, 1, 0, 0]);
      } else {
        assert.equal(await client().write('x').rest(), '');
        assert.deepEqual(counts(), [1, 0, 0, 1, 0, 1, 0]);
      }
    }
  });
}

test('waits for a service that says nothing for as long as it may, and no longer', async (t) => {
  const { client, service, counts, log, proxy, web } = await guarded(t, {
    fields: { grpc_service: { envoy_grpc: { cluster_name: 'guard' } } },
  });
  service.answer = 'silence';
  assert.equal(await client().write('x').rest(), '');
  assert.deepEqual(counts(), [1, 0, 0, 1, 0, 1, 0]);
  assert.equal(web.sockets.length, 0);
  await proxy.close();
  assert.deepEqual(log.lines(), ['UAEX ext_authz_error -']);
});

test('asks no longer about a client that leaves, and lets one wait that has ended', async (t) => {
  const { client, service, counts } = await guarded(t);
  service.answer = 'silence';
  const leaving = client().write('x');
  await eventually(() => service.asked.length === 1, 'asked');
  assert.equal(counts().at(-1), 1);
  leaving.socket.resetAndDestroy();
  await eventually(() => service.over === 1, 'cancelled');
  await untilEqual(0, () => counts().at(-1)!, 'questions');
  assert.deepEqual(counts(), [1, 0, 0, 0, 0, 0, 0]);
  service.answer = { status: {} };
  const brief = client();
  brief.socket.end('brief');
  assert.equal(await brief.rest(), 'web:brief');
});

test('asks about connections alone of which the filters before have said so', async (t) => {
  const value = { string_match: { exact: 'ann' } };
  const filter_enabled_metadata = { filter: 'envoy.filters.network.ext_authz', path: [{ key: 'user' }], value };
  const { client, service, stat } = await guarded(t, { second: { filter_enabled_metadata } });
  const of = (name: string): number => stat(`ext_authz.second.${name}`);
  for (const [user, asked] of [
    ['bob', 1],
    ['ann', 3],
  ] as const) {
    service.answer = { status: {}, dynamic_metadata: { fields: { user: { string_value: user } } } };
    assert.equal(await client().write('x').until('web:x'), 'web:x');
    assert.equal(service.asked.length, asked);
  }
  assert.deepEqual([of('disabled'), of('total'), of('ok')], [1, 1, 1]);
});

test('tells the service the labels of this proxy', async (t) => {
  const node = { id: 'n', cluster: 'c', metadata: { labels: { app: 'edge', n: 1 } } };
  const { client, service } = await guarded(t, { fields: { bootstrap_metadata_labels_key: 'labels' }, node });
  assert.equal(await client().write('x').until('web:x'), 'web:x');
  assert.deepEqual((service.last.attributes.destination as JsonObject).labels, { app: 'edge' });
});

test('refuses what it cannot do by name', () => {
  const faults = (fields: JsonObject): string[] =>
    errorsOf(
      filter(TYPE, { stat_prefix: 'g', grpc_service: { envoy_grpc: { cluster_name: 'web' } }, ...fields }),
      tcpFilter({}),
    ).map((text) => text.slice(text.indexOf('typed_config.') + 'typed_config.'.length));
  assert.deepEqual(faults({}), []);
  assert.match(faults({ stat_prefix: '' })[0]!, /^stat_prefix: /);
  assert.deepEqual(faults({ grpc_service: null }), ['grpc_service: is required']);
  assert.match(
    faults({ grpc_service: { envoy_grpc: { cluster_name: 'wbe' } } })[0]!,
    /^grpc_service\.envoy_grpc\.cluster_name: cluster "wbe" does not exist; did you mean "web"\?/,
  );
});
