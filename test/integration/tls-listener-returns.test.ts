// What a TLS listener has counted under names of run time, when it goes and another comes under its name.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CertificateFolder } from '../support/certificates.ts';
import { bootstrapOf, createProxy } from '../support/embedded.ts';
import { untilEqual } from '../support/eventually.ts';
import { getOverTls } from '../support/tls-client.ts';
import { pair, tlsListener } from '../support/tls-config.ts';

const VERSION = 'listener.returning.ssl.versions.TLSv1.3';

test('a TLS listener that comes back counts its handshakes anew, in cells of its own', async () => {
  using folder = new CertificateFolder();
  const certificate = await folder.make('a', { altNames: 'DNS:a.example' });
  const listener = tlsListener('returning', { common: { tls_certificates: [pair(certificate)] } });
  const present = bootstrapOf([listener as never], []);
  await using proxy = await createProxy(present, { concurrency: 1, drainTimeS: 1 });
  const handshake = async (): Promise<string> =>
    await getOverTls(proxy.listeners.get('returning')!.port, { rejectUnauthorized: false });

  await handshake();
  await handshake();
  await untilEqual(2, () => proxy.stats.value(VERSION), 'handshakes of the first');
  await proxy.applyBootstrap(bootstrapOf([], []));
  await untilEqual(undefined, () => proxy.stats.value(VERSION), 'handshakes of the one that has gone');
  await proxy.applyBootstrap(present);
  assert.match(await handshake(), /^HTTP/);
  await untilEqual(1, () => proxy.stats.value(VERSION), 'handshakes of the one that came back');
});
