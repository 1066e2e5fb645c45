// What first bytes are taken for, held against what OpenSSL itself says of them over real sockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createSecureContext, TLSSocket } from 'node:tls';
import fc from 'fast-check';
import {
  FIRST_RECORD_FAULTS,
  type FirstRecord,
  firstRecordOf,
} from '../../../../../src/data-plane/listener/tls/first-record.ts';
import { CertificateFolder, type TestCertificate } from '../../../../support/certificates.ts';
import { helloMessage, record } from '../../../../support/client-hello.ts';

const HELLO = record(helloMessage({ serverName: 'a.example', protocols: ['h2', 'http/1.1'] }));
/** 0x2e bytes of SSL 2 follow. */
const SSL2_HELLO = Buffer.from('802e0103010015000000100100800300800700c006004002008004008000000a', 'hex');
const ALERT = Buffer.from('15030100020228', 'hex');

let folder: CertificateFolder;
let certificate: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  certificate = await folder.make('own');
});

after(() => folder[Symbol.dispose]());

/** @returns the code of the error and OpenSSL's reason, without bytes in answer; or what it answers. */
async function opensslOn(bytes: Buffer): Promise<{ code?: string; reason?: string; answered: number }> {
  const { certificate: cert, key } = certificate;
  const secureContext = createSecureContext({ cert, key });
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const client = connect((server.address() as { port: number }).port, '127.0.0.1', () => client.write(bytes));
  let answered = 0;
  client
    .on('error', () => {})
    .on('data', (chunk) => {
      answered += chunk.length;
    });
  const [raw] = await accepting;
  server.close();
  const socket = new TLSSocket(raw, { isServer: true, secureContext });
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException & { reason?: string }];
  if (!client.closed) await once(client.resume(), 'close');
  return { code: error.code!, reason: error.reason!, answered };
}

test('a record is whole with its last byte, and not before', () => {
  for (let length = 0; length < HELLO.length; length++) {
    assert.equal(firstRecordOf(HELLO.subarray(0, length)), 'incomplete', `${length} bytes`);
  }
  assert.equal(firstRecordOf(HELLO), 'whole');
  assert.equal(firstRecordOf(Buffer.concat([HELLO, Buffer.from('more')])), 'whole');
});

test('a part of a ClientHello is enough where its record ends', () => {
  assert.equal(firstRecordOf(record(helloMessage().subarray(0, 10))), 'whole');
  assert.equal(firstRecordOf(record(Buffer.alloc(0))), 'whole');
});

for (const [name, bytes] of Object.entries({
  'a record of another kind': ALERT,
  'a record that is too long': Buffer.from('1603014801', 'hex'),
  'a ClientHello of the oldest clients': SSL2_HELLO,
})) {
  test(`${name} is for OpenSSL, at once`, () => assert.equal(firstRecordOf(bytes), 'whole'));
}

test('the longest record that OpenSSL takes is waited for', () => {
  assert.equal(firstRecordOf(Buffer.from('1603014800', 'hex')), 'incomplete');
});

describe('what has never been TLS is called what OpenSSL calls it, which does not answer it', () => {
  const cases: Record<string, [bytes: string | Buffer, record: FirstRecord]> = {
    'a request of HTTP': ['GET / HTTP/1.1\r\n\r\n', 'ERR_SSL_HTTP_REQUEST'],
    'one with a body': ['POST /', 'ERR_SSL_HTTP_REQUEST'],
    'one for a head': ['HEAD /', 'ERR_SSL_HTTP_REQUEST'],
    'one that puts': ['PUT / HTTP/1.1\r\n', 'ERR_SSL_HTTP_REQUEST'],
    'one for a tunnel': ['CONNECT a.example:443 HTTP/1.1\r\n', 'ERR_SSL_HTTPS_PROXY_REQUEST'],
    'a preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'ERR_SSL_WRONG_VERSION_NUMBER'],
    'another text': ['SSH-2.0-x\r\n', 'ERR_SSL_WRONG_VERSION_NUMBER'],
    zeros: [Buffer.alloc(20), 'ERR_SSL_WRONG_VERSION_NUMBER'],
    'all ones': [Buffer.alloc(600, 0xff), 'ERR_SSL_WRONG_VERSION_NUMBER'],
    'another major version': [Buffer.from('160400000501000001aa', 'hex'), 'ERR_SSL_WRONG_VERSION_NUMBER'],
  };
  for (const [name, [given, expected]] of Object.entries(cases)) {
    test(name, async () => {
      const bytes = Buffer.from(given as string, 'latin1');
      assert.equal(firstRecordOf(bytes), expected);
      const reason = FIRST_RECORD_FAULTS[expected as keyof typeof FIRST_RECORD_FAULTS];
      assert.deepEqual(await opensslOn(bytes), { code: expected, reason, answered: 0 });
    });
  }
});

test('methods of later standards are requests of HTTP, too', () => {
  for (const method of ['DELETE', 'OPTIONS', 'PATCH', 'TRACE']) {
    assert.equal(firstRecordOf(Buffer.from(`${method} / HTTP/1.1\r\n`)), 'ERR_SSL_HTTP_REQUEST');
  }
});

test('whatever OpenSSL waits for or answers is never refused here', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 5, maxLength: 12 }), async (given) => {
      const bytes = Buffer.from(given);
      const found = firstRecordOf(bytes);
      if (found === 'incomplete' || found === 'whole') return;
      const { code, answered } = await opensslOn(bytes);
      assert.equal(code, found);
      assert.equal(answered, 0);
    }),
    {
      numRuns: 60,
      examples: [[new Uint8Array([0x80, 0x2e, 0x01, 3, 1])], [new Uint8Array([0, 0, 2, 0, 0, 0, 0])]],
    },
  );
});
