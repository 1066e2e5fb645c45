// What TLS to upstreams takes from files: lists of what is no longer believed and bundles; and the log of keys that it writes. Over
// HTTP/1 and HTTP/2.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { clusterErrors, clusterNamed } from '../support/bootstrap.ts';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { readAll } from '../support/http2-upstream.ts';
import { httpOptions, proxyBy, SecureUpstream, securely } from '../support/secure-upstream.ts';

const AUTO = httpOptions({ auto_config: {} });

let folder: CertificateFolder;
let authority: TestCertificate;
let server: TestCertificate;
let client: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  authority = await folder.make('authority', { isAuthority: true });
  server = await folder.make('server', { altNames: 'DNS:a.example', issuer: authority });
  client = await folder.make('client', { issuer: authority });
});

after(() => folder[Symbol.dispose]());

async function get(port: number): Promise<{ status: number; body: string }> {
  const request = http.request({ port, host: '127.0.0.1', agent: false }).end();
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return { status: response.statusCode!, body: (await readAll(response)).toString() };
}

/** The name of the client that the upstream hears of. */
const NAME_OF_CLIENT = { requestCert: true, rejectUnauthorized: false } as const;

for (const protocols of [['h2'], ['http/1.1']]) {
  describe(`TLS to upstreams of ${protocols[0]}`, () => {
    it('believes no certificate that its issuer has taken back', async (t) => {
      const upstream = await SecureUpstream.start(t, server, protocols);
      const trusted_ca = { filename: authority.certificatePath };
      const other = await folder.make('other', { issuer: authority });
      for (const [revoked, status] of [
        [server, 503],
        [other, 200],
      ] as const) {
        const crl = { filename: await folder.revocationList('taken-back', authority, [revoked]) };
        const { proxy, port } = await proxyBy(t, upstream.port, {
          ...AUTO,
          ...securely({ validation_context: { trusted_ca, crl } }),
        });
        const answer = await get(port);
        assert.equal(answer.status, status, answer.body);
        if (status === 503) assert.match(answer.body, /certificate verify failed: CERT_REVOKED/);
        assert.equal(proxy.clusterStat('web', 'upstream_cx_connect_fail'), status === 503 ? 1 : 0);
      }
    });

    it('shows a certificate out of a bundle', async (t) => {
      const upstream = await SecureUpstream.start(t, server, protocols, undefined, { tls: NAME_OF_CLIENT });
      const pkcs12 = { filename: await folder.bundle('client', client, 'its word') };
      const common = { tls_certificates: [{ pkcs12, password: { inline_string: 'its word' } }] };
      const { port } = await proxyBy(t, upstream.port, { ...AUTO, ...securely(common) });
      assert.equal((await get(port)).status, 200);
      assert.equal(upstream.requests.at(-1)!.clientName, 'client');
    });

    it('writes the secrets of connections to a file that asks for them, for the addresses that it names', async (t) => {
      const upstream = await SecureUpstream.start(t, server, protocols);
      for (const [address_prefix, isLogged] of [
        ['10.0.0.0', false],
        ['127.0.0.0', true],
      ] as const) {
        const path = join(folder.path, `${protocols[0]!.replace('/', '-')}-${address_prefix}.log`);
        const key_log = { path, remote_address_range: [{ address_prefix, prefix_len: 8 }] };
        const { port } = await proxyBy(t, upstream.port, { ...AUTO, ...securely({ key_log }) });
        assert.equal((await get(port)).status, 200);
        const written = (): boolean =>
          existsSync(path) && /^CLIENT_RANDOM [0-9a-f]{64} [0-9a-f]{96}$/m.test(readFileSync(path, 'latin1'));
        if (isLogged) await eventually(written, 'secrets');
        else assert.ok(!existsSync(path));
      }
    });
  });
}

it('STARTTLS is refused by its name', () => {
  const type = 'type.googleapis.com/envoy.extensions.transport_sockets.starttls.v3.UpstreamStartTlsConfig';
  const transport_socket = { name: 'envoy.transport_sockets.starttls', typed_config: { '@type': type } };
  const errors = clusterErrors(clusterNamed('web', { transport_socket }));
  assert.equal(errors.length, 1);
  assert.match(errors[0]!, /transport_socket.*starttls/i);
});
