import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { curveOf } from '../../../src/tls/curve-name.ts';
import { CertificateFolder, type TestCertificate } from '../../support/certificates.ts';

interface Case {
  readonly group: string;
  readonly version: 'TLSv1.2' | 'TLSv1.3';
  readonly name: string;
}

const CASES: readonly Case[] = [
  { group: 'P-256', version: 'TLSv1.2', name: 'P-256' },
  { group: 'P-256', version: 'TLSv1.3', name: 'P-256' },
  { group: 'P-384', version: 'TLSv1.3', name: 'P-384' },
  { group: 'P-521', version: 'TLSv1.3', name: 'P-521' },
  { group: 'X25519:P-256', version: 'TLSv1.2', name: 'X25519' },
  { group: 'X25519', version: 'TLSv1.3', name: 'X25519' },
  { group: 'X25519MLKEM768', version: 'TLSv1.3', name: 'X25519MLKEM768' },
];

/** Names of a first handshake and of one that resumes its session. */
async function namesOf({ certificate, key }: TestCertificate, { group, version }: Case): Promise<readonly string[]> {
  const server = createServer({ cert: certificate, key, ecdhCurve: group }, (socket) => socket.resume().end('x'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let session: Buffer | undefined;
  const names: string[] = [];
  for (const isResumed of [false, true]) {
    const socket: TLSSocket = connect({
      port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      maxVersion: version,
      ecdhCurve: group,
      ...(session && { session }),
    });
    socket.on('session', (told) => {
      session = told;
    });
    await once(socket, 'secureConnect');
    assert.equal(socket.isSessionReused(), isResumed);
    names.push(curveOf(socket) ?? '');
    socket.resume().end();
    await once(socket, 'close');
  }
  server.close();
  await once(server, 'close');
  return names;
}

describe('the group of a key exchange', () => {
  for (const each of CASES) {
    it(`is called ${each.name} with ${each.version}, where a session is resumed, too`, async () => {
      using folder = new CertificateFolder();
      assert.deepEqual(await namesOf(await folder.make('site'), each), [each.name, each.name]);
    });
  }
});
