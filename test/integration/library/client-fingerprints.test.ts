// Fingerprints of TLS clients as rules and logs see them, through the whole proxy.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bootstrap } from '../../../src/library/index.ts';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../../support/bootstrap.ts';
import { CertificateFolder } from '../../support/certificates.ts';
import { toFormattedChain } from '../../support/chain-trees.ts';
import { RFC_8448 } from '../../support/client-hello.ts';
import { bootstrapOf, createProxy } from '../../support/embedded.ts';
import { getOverTls } from '../../support/tls-client.ts';
import { pair, tlsSocket } from '../../support/tls-config.ts';
import { WireClient } from '../../support/wire.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.filters';

function inspector(fields: JsonObject): JsonObject {
  const typed_config = { '@type': `${TYPES}.listener.tls_inspector.v3.TlsInspector`, ...fields };
  return { name: 'envoy.filters.listener.tls_inspector', typed_config };
}

function saying(name: string, inline_string: string): JsonObject {
  const typed_config = { '@type': `${TYPES}.network.direct_response.v3.Config`, response: { inline_string } };
  return { name, filters: [{ name: 'envoy.filters.network.direct_response', typed_config }] };
}

function withListener(fields: JsonObject): Bootstrap {
  return bootstrapOf([listenerWith([], { address: socketAddress('127.0.0.1', 0), ...fields })], []) as Bootstrap;
}

for (const { operator, field, expected } of [
  { operator: 'JA3', field: 'enable_ja3_fingerprinting', expected: 'da4dea34fe6d4ce5f0725df3f2682fa0' },
  { operator: 'JA4', field: 'enable_ja4_fingerprinting', expected: 't13d030900_55b375c5d22e_59cd3dafc54d' },
]) {
  test(`clients are led to chains by their ${operator}, of which plain text and other builds have none`, async () => {
    const source = { inline_string: `%TLS_${operator}_FINGERPRINT%` };
    const tree = { on_no_match: toFormattedChain({ text_format_source: source }) };
    const chains = { filter_chains: [saying(expected, 'known'), saying('-', 'unknown')], filter_chain_matcher: tree };
    await using proxy = await createProxy(
      withListener({ ...chains, listener_filters: [inspector({ [field]: true })] }),
    );
    const answer = (first: Buffer): Promise<string> => {
      const client = new WireClient(proxy.listeners.get('main')!.port);
      client.socket.write(first);
      return client.rest();
    };
    assert.equal(await answer(RFC_8448), 'known');
    assert.equal(await answer(Buffer.from('GET / HTTP/1.1\r\n\r\n')), 'unknown');
    await proxy.applyBootstrap(withListener({ ...chains, listener_filters: [inspector({})] }));
    assert.equal(await answer(RFC_8448), 'unknown');
  });
}

test('upstreams and logs are told of fingerprints of clients that are secured', async () => {
  using folder = new CertificateFolder();
  const certificate = await folder.make('one', { altNames: 'DNS:a.example' });
  const header = (key: string, value: string): JsonObject => ({ header: { key, value } });
  const routes = [
    {
      match: { prefix: '/' },
      direct_response: { status: 200 },
      response_headers_to_add: [header('x-ja3', '%TLS_JA3_FINGERPRINT%'), header('x-ja4', '%TLS_JA4_FINGERPRINT%')],
    },
  ];
  const filters = [httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } })];
  const socket = tlsSocket({ tls_certificates: [pair(certificate)] }) as JsonObject;
  await using proxy = await createProxy(
    withListener({
      filter_chains: [{ filters, transport_socket: socket }],
      listener_filters: [inspector({ enable_ja3_fingerprinting: true, enable_ja4_fingerprinting: true })],
    }),
  );
  const { port } = proxy.listeners.get('main')!;
  const told = async (options: object) => {
    const answer = await getOverTls(port, { rejectUnauthorized: false, ...options });
    return ['x-ja3', 'x-ja4'].map((name) => new RegExp(`^${name}: (.*)\r$`, 'm').exec(answer)?.[1] ?? '');
  };
  const [ja3, ja4] = await told({ ALPNProtocols: ['http/1.1'] });
  assert.match(ja3!, /^[0-9a-f]{32}$/);
  assert.match(ja4!, /^t13d\d{4}h1_[0-9a-f]{12}_[0-9a-f]{12}$/);
  assert.deepEqual(await told({ ALPNProtocols: ['http/1.1'] }), [ja3, ja4]);
  const [otherJa3, otherJa4] = await told({ maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' });
  assert.notEqual(otherJa3, ja3);
  assert.match(otherJa4!, /^t12d\d{4}00_/);
});
