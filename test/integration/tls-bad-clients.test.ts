// Handshakes that fail, many at a time: each is counted by its reason, none leaves anything behind, and others are served.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { helloMessage, record } from '../support/client-hello.ts';
import { eventually } from '../support/eventually.ts';
import { tlsClient } from '../support/tls-client.ts';
import { bootstrapOf, pair, tlsListener } from '../support/tls-config.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const AT_A_TIME = 100;
const REQUEST = 'GET / HTTP/1.1\r\nhost: a.example\r\n\r\n';
/** The head of a record with a ClientHello of 196 bytes, and the first few of them. */
const BEGUN_HELLO = Buffer.from('16030100c8010000c40303', 'hex');

let folder: CertificateFolder;
let certificate: TestCertificate;
let weir: WeirProcess;
let ports: Map<string, number>;

before(async () => {
  folder = new CertificateFolder();
  certificate = await folder.make('server', { altNames: 'DNS:a.example' });
  const common = { tls_certificates: [pair(certificate)] };
  const validation_context = { trusted_ca: { filename: certificate.certificatePath } };
  const listeners = [
    tlsListener('tls', { common }),
    tlsListener('mutual', { common: { ...common, validation_context }, context: { require_client_certificate: true } }),
    tlsListener('ticketless', { common, context: { disable_stateless_session_resumption: true } }),
    tlsListener('impatient', { common, chain: { transport_socket_connect_timeout: '0.2s' } }),
  ];
  weir = await startWeir({ configYaml: bootstrapOf(listeners), args: ['--concurrency', '1'] });
  ports = new Map([...(await weir.listeners())].map(([name, { port }]) => [name, port]));
});

after(async () => {
  await weir?.stop();
  folder[Symbol.dispose]();
});

/** However: that it fails is what is wanted. */
function untilClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.on('error', () => {}).once('close', () => resolve());
    socket.resume();
  });
}

/** Says what it says and waits for the end. */
function raw(act: (socket: Socket) => void): (port: number) => Promise<void> {
  return async (port) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => act(socket));
    await untilClosed(socket);
  };
}

function shaking(options: ConnectionOptions): (port: number) => Promise<void> {
  return async (port) => {
    const socket = tlsClient(port, { rejectUnauthorized: false, ...options });
    await untilClosed(socket);
  };
}

interface Case {
  readonly name: string;
  readonly listener: string;
  readonly client: (port: number) => Promise<void>;
  /** Below `listener.<name>.`; null where nothing is counted. */
  readonly stat: string | null;
}

const CASES: readonly Case[] = [
  {
    name: 'speak HTTP without TLS',
    listener: 'tls',
    client: raw((socket) => socket.write(REQUEST)),
    stat: 'ssl.connection_error',
  },
  {
    name: 'send what is nothing at all',
    listener: 'tls',
    client: raw((socket) => socket.write(Buffer.alloc(600, 0xff))),
    stat: 'ssl.connection_error',
  },
  {
    name: 'leave in the middle',
    listener: 'tls',
    client: raw((socket) => socket.end(BEGUN_HELLO)),
    stat: 'ssl.connection_error',
  },
  {
    name: 'know no cipher of the certificate',
    listener: 'tls',
    client: shaking({ maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }),
    stat: 'ssl.connection_error',
  },
  { name: 'have no certificate', listener: 'mutual', client: shaking({}), stat: 'ssl.fail_verify_no_cert' },
  {
    name: 'stop in the middle',
    listener: 'impatient',
    client: raw((socket) => socket.write(BEGUN_HELLO)),
    stat: 'downstream_cx_transport_socket_connect_timeout',
  },
  { name: 'only look whether a port is open', listener: 'tls', client: raw((socket) => socket.end()), stat: null },
];

describe('clients whose handshake fails', () => {
  for (const { name, listener, client, stat } of CASES) {
    it(`that ${name} are counted, leave nothing behind, and are in nobody's way`, async () => {
      const port = ports.get(listener)!;
      const before = await sumsOf(listener);
      const descriptors = descriptorCount();
      const neighbour = tlsClient(ports.get('tls')!, { ca: certificate.certificate });
      await once(neighbour, 'secureConnect');
      const clients = Array.from({ length: AT_A_TIME }, () => client(port));
      for (let request = 0; request < 5; request += 1) {
        neighbour.write(REQUEST);
        const [answer] = (await once(neighbour, 'data')) as [Buffer];
        assert.match(answer.toString('latin1'), /^HTTP\/1\.1 200 OK\r\n/);
      }
      neighbour.destroy();
      await Promise.all(clients);
      for (const active of ['tls', listener]) await weir.untilStat(`listener.${active}.downstream_cx_active`, 0);
      // Connections to the admin interface come and go.
      await eventually(() => descriptorCount() <= descriptors, 'what was open before, and no more');
      const after = await sumsOf(listener);
      for (const [counted, count] of after) {
        assert.equal(count - before.get(counted)!, counted === stat ? AT_A_TIME : 0, counted);
      }
    });
  }
});

describe('clients that stop behind any byte of their first message', () => {
  it("are in nobody's way, and are counted however they leave", async () => {
    const hello = record(helloMessage({ serverName: 'a.example' }));
    const port = ports.get('tls')!;
    const errors = (await weir.stat('listener.tls.ssl.connection_error')) ?? 0;
    const descriptors = descriptorCount();
    const stopped: Socket[] = [];
    for (let length = 1; length < hello.length; length += 1) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      await once(socket, 'connect');
      await new Promise((resolve) => socket.resume().write(hello.subarray(0, length), resolve));
      stopped.push(socket);
    }
    const neighbour = tlsClient(port, { ca: certificate.certificate });
    neighbour.write(REQUEST);
    const [answer] = (await once(neighbour, 'data')) as [Buffer];
    assert.match(answer.toString('latin1'), /^HTTP\/1\.1 200 OK\r\n/);
    neighbour.destroy();
    // They have been read: the proxy closes none of them by itself.
    await weir.untilStat('listener.tls.downstream_cx_active', stopped.length);
    const leave = [
      (socket: Socket) => socket.end(),
      (socket: Socket) => socket.destroy(),
      (socket: Socket) => socket.resetAndDestroy(),
    ];
    for (const [index, socket] of stopped.entries()) leave[index % leave.length]!(socket);
    await weir.untilStat('listener.tls.downstream_cx_active', 0);
    assert.equal(await weir.stat('listener.tls.ssl.connection_error'), errors + stopped.length);
    await eventually(() => descriptorCount() <= descriptors, 'what was open before, and no more');
  });
});

describe('a client that wants to change its keys, and with them perhaps its certificate', () => {
  // With tickets and without, which are different contexts.
  for (const listener of ['tls', 'ticketless']) {
    it(`is refused by ${listener}, and has been served until then`, async () => {
      const client = tlsClient(ports.get(listener)!, { ca: certificate.certificate, maxVersion: 'TLSv1.2' });
      await once(client, 'secureConnect');
      client.write(REQUEST);
      const [answer] = (await once(client, 'data')) as [Buffer];
      assert.match(answer.toString('latin1'), /^HTTP\/1\.1 200 OK\r\n/);
      const ended = new Promise((resolve) => client.once('close', resolve));
      const failed = new Promise<Error | null>((resolve) => {
        client.on('error', resolve);
        client.renegotiate({}, resolve);
      });
      assert.match(String(await failed), /no renegotiation/);
      client.destroy();
      await ended;
      await weir.untilStat(`listener.${listener}.downstream_cx_active`, 0);
    });
  }
});

/** What failed handshakes may be counted as. */
async function sumsOf(listener: string): Promise<Map<string, number>> {
  const sums = new Map<string, number>();
  for (const stat of new Set(CASES.flatMap((each) => each.stat ?? []))) {
    sums.set(stat, (await weir.stat(`listener.${listener}.${stat}`)) ?? 0);
  }
  return sums;
}

function descriptorCount(): number {
  return readdirSync(`/proc/${weir.pid}/fd`).length;
}
