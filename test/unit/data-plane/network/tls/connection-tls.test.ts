import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { ConnectionTls } from '../../../../../src/data-plane/network/tls/connection-tls.ts';
import { wantSessionIds } from '../../../../../src/tls/session-id.ts';
import { CertificateFolder } from '../../../../support/certificates.ts';
import { securedPair } from '../../../../support/secured-pair.ts';

/** Counts how often a socket is asked for its session. */
function questions(socket: TLSSocket): () => number {
  const handle = (socket as unknown as { readonly _handle: { getSession(): Buffer | undefined } })._handle;
  const node = handle.getSession;
  let count = 0;
  handle.getSession = function () {
    count++;
    return Reflect.apply(node, this, []);
  };
  return () => count;
}

test('the identifier of a session is read when it is asked for, and with each handshake once a format asks', async (t) => {
  using folder = new CertificateFolder();
  const certificate = await folder.make('own');
  const versions = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2', nearConnects: true } as const;
  const [first, second, third] = [
    await securedPair(t, certificate, versions),
    await securedPair(t, certificate, versions),
    await securedPair(t, certificate, versions),
  ];
  const [ofFirst, ofSecond, ofThird] = [first, second, third].map(({ near }) => questions(near));
  const lazy = new ConnectionTls(first!.near, null, false);
  const late = new ConnectionTls(second!.near, null, false);
  assert.equal(ofFirst!(), 0);
  const id = lazy.sessionId;
  assert.match(id, /^[0-9a-f]{64}$/);
  wantSessionIds();
  const eager = new ConnectionTls(third!.near, null, false);
  assert.equal(ofThird!(), 1);
  assert.equal(ofSecond!(), 0);
  for (const { near } of [first!, second!, third!]) {
    near.destroy();
    await once(near, 'close');
  }
  assert.equal(lazy.sessionId, id);
  assert.equal(ofFirst!(), 1);
  assert.equal(late.sessionId, '');
  assert.match(eager.sessionId, /^[0-9a-f]{64}$/);
  assert.equal(ofThird!(), 1);
});
