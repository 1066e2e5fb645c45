// Which ciphers are agreed on where the configuration names none. Real handshakes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect as connectPlain } from 'node:net';
import { after, before, test } from 'node:test';
import { connect, createServer, DEFAULT_CIPHERS, type TLSSocket, type TlsOptions } from 'node:tls';
import { ClientTls } from '../../../src/tls/client-tls.ts';
import { secureContextOptions } from '../../../src/tls/secure-context.ts';
import { CertificateFolder, type TestCertificate } from '../../support/certificates.ts';
import { upstreamTls } from '../../support/upstream-tls.ts';

let folder: CertificateFolder;
let both: Pick<TlsOptions, 'cert' | 'key'>;

before(async () => {
  folder = new CertificateFolder();
  const pairs: readonly TestCertificate[] = [await folder.make('ec'), await folder.make('rsa', { key: 'rsa' })];
  both = { cert: pairs.map(({ certificate }) => certificate), key: pairs.map(({ key }) => key) };
});

after(() => folder[Symbol.dispose]());

/** @returns the cipher of a handshake with a server that has certificates of both kinds. */
async function agreed(options: TlsOptions, client: (port: number) => Promise<TLSSocket>): Promise<string> {
  const server = createServer({ ...options, ...both, maxVersion: 'TLSv1.2' }).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const socket = await client((server.address() as AddressInfo).port);
    await once(socket, 'secureConnect');
    const { name } = socket.getCipher();
    socket.destroy();
    return name;
  } finally {
    server.close();
  }
}

test('a server that chooses signs by its ECDSA key, also for a client that would rather have RSA', async () => {
  const { ciphers } = secureContextOptions(upstreamTls());
  const cipher = await agreed({ ciphers: ciphers!, honorCipherOrder: true }, async (port) =>
    connect({ port, host: '127.0.0.1', rejectUnauthorized: false }),
  );
  assert.equal(cipher, 'ECDHE-ECDSA-AES128-GCM-SHA256');
});

test('a server that leaves the choice is asked for its ECDSA key', async () => {
  const cipher = await agreed({ honorCipherOrder: false }, async (port) => {
    const raw = connectPlain({ port, host: '127.0.0.1', allowHalfOpen: true });
    await once(raw, 'connect');
    const target = { label: 'test', sentName: '', verifiedName: '', hostname: '', alpnProtocols: [] };
    return new ClientTls(upstreamTls()).begin(raw, target);
  });
  assert.equal(cipher, 'ECDHE-ECDSA-AES128-GCM-SHA256');
});

test('all that Node enables is enabled, and TLS 1.3 is as it was', () => {
  const { ciphers } = secureContextOptions(upstreamTls());
  const names = ciphers!.split(':');
  const own = DEFAULT_CIPHERS.split(':');
  assert.deepEqual(names.toSorted(), own.toSorted());
  const isNew = (name: string): boolean => name.startsWith('TLS_');
  assert.deepEqual(names.filter(isNew), own.filter(isNew));
  assert.deepEqual(
    names.filter((name) => name.includes('RSA')),
    own.filter((name) => name.includes('RSA')),
  );
});

test('ciphers that are configured are taken as they stand', () => {
  const named = ['ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-AES256-GCM-SHA384'];
  const settings = upstreamTls({ common_tls_context: { tls_params: { cipher_suites: named } } });
  assert.equal(secureContextOptions(settings).ciphers, named.join(':'));
});
