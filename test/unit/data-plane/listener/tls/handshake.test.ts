// A connection before it is secured: what it costs until its first record is there, and how it ends when none comes. Real
// sockets, in both ways of reading.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectPlain, createServer, type Socket } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { connect, createSecureContext, type TLSSocket, type TLSSocketOptions } from 'node:tls';
import { Handshake, type HandshakeOwner } from '../../../../../src/data-plane/listener/tls/handshake.ts';
import { DownstreamConnection } from '../../../../../src/data-plane/network/downstream-connection.ts';
import { ACCEPTED_SOCKET_OPTIONS } from '../../../../../src/data-plane/network/socket-events.ts';
import { ConnectionTls } from '../../../../../src/data-plane/network/tls/connection-tls.ts';
import type { PacedHandshake } from '../../../../../src/data-plane/network/tls/handshake-pacing.ts';
import { serverSocketOptions } from '../../../../../src/data-plane/network/tls/tls-sockets.ts';
import type { WorkerContext } from '../../../../../src/data-plane/worker-context.ts';
import { CertificateFolder, type TestCertificate } from '../../../../support/certificates.ts';
import { helloMessage, record } from '../../../../support/client-hello.ts';
import { DataPlaneFixture } from '../../../../support/data-plane.ts';
import { eventually } from '../../../../support/eventually.ts';

const HELLO = record(helloMessage());
/** A record that is whole, and brings too little for an answer. */
const HALF_HELLO = record(helloMessage().subarray(0, 20));

let folder: CertificateFolder;
let certificate: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  certificate = await folder.make('own');
});

after(() => folder[Symbol.dispose]());

/** Lets nobody begin before a test does. */
class Queue {
  readonly waiting: PacedHandshake[] = [];

  ask(handshake: PacedHandshake): boolean {
    this.waiting.push(handshake);
    return false;
  }

  leave(handshake: PacedHandshake): void {
    this.waiting.splice(this.waiting.indexOf(handshake), 1);
  }

  begin(): void {
    this.waiting.shift()!.begin();
  }
}

/** Notes what it is told. */
class Owner implements HandshakeOwner {
  readonly events: string[] = [];
  readonly context: WorkerContext;
  timeoutMs = 0;
  isReady = true;
  /** How many TLS sockets have been made. */
  made = 0;
  /** What is thrown when the TLS socket has been made. */
  fault: Error | null = null;
  readonly #options: TLSSocketOptions;

  constructor(context: WorkerContext) {
    const { certificate: cert, key } = certificate;
    const logFault = (_what: string, error: unknown): void =>
      void this.events.push(`fault: ${(error as Error).message}`);
    this.context = Object.create(context, { logFault: { value: logFault } }) as WorkerContext;
    this.#options = serverSocketOptions({
      secureContext: createSecureContext({ cert, key }),
      alpnProtocols: [],
      requestsCertificate: false,
      requiresCertificate: false,
      findContext: null,
      stapler: null,
    });
  }

  optionsFor(): TLSSocketOptions {
    this.made += 1;
    return this.#options;
  }

  watch(): void {
    if (this.fault !== null) throw this.fault;
  }

  judge(socket: TLSSocket): ConnectionTls {
    return new ConnectionTls(socket, null, false);
  }

  onFailed(error: NodeJS.ErrnoException): void {
    this.events.push(`failed: ${error.code ?? error.message}`);
  }

  onHandshakeTimeout(): void {
    this.events.push('timeout');
  }

  onSecured(): void {
    this.events.push('secured');
  }

  onUnsecured(): void {
    this.events.push('unsecured');
  }

  onEnded(): void {
    this.events.push('ended');
  }

  onConnectionClosed(): void {
    this.events.push('closed');
  }
}

interface Accepted {
  readonly owner: Owner;
  readonly handshake: Handshake;
  readonly connection: DownstreamConnection;
  readonly raw: Socket;
  readonly client: Socket;
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

for (const readMode of ['lean', 'events'] as const) {
  async function accepted(t: TestContext): Promise<Accepted> {
    const owner = new Owner(new DataPlaneFixture({ readMode }).context);
    Object.defineProperty(owner.context, 'readMode', { value: readMode });
    const server = createServer(ACCEPTED_SOCKET_OPTIONS).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const accepting = new Promise<Omit<Accepted, 'client'>>((resolve) => {
      server.once('connection', (raw) => {
        const connection = new DownstreamConnection(raw, 0, 1 << 20);
        connection.open(owner);
        resolve({ owner, connection, raw, handshake: new Handshake(owner, connection) });
      });
    });
    const client = connectPlain({
      port: (server.address() as { port: number }).port,
      host: '127.0.0.1',
      noDelay: true,
    });
    client.on('error', () => {});
    const made = await accepting;
    server.close();
    t.after(() => {
      client.destroy();
      made.connection.socket.destroy();
    });
    return { ...made, client };
  }

  /** The proxy has read all of it. */
  async function sent({ client, raw }: Accepted, bytes: string | Buffer): Promise<void> {
    const due = raw.bytesRead + bytes.length;
    client.write(bytes, 'latin1');
    await eventually(() => raw.bytesRead >= due, 'the bytes');
    await turns(2);
  }

  describe(`a connection that is to be secured, read by ${readMode}`, () => {
    test('is nothing to OpenSSL before its first record is there', async (t) => {
      const all = await accepted(t);
      const { owner, connection, raw } = all;
      for (const [from, to] of [
        [0, 1],
        [1, 5],
        [5, 30],
        [30, HELLO.length - 1],
      ] as const) {
        await sent(all, HELLO.subarray(from, to));
        assert.equal(owner.made, 0, `${to} bytes`);
        assert.equal(connection.socket, raw);
      }
      await sent(all, HELLO.subarray(-1));
      assert.equal(owner.made, 1);
      assert.notEqual(connection.socket, raw);
    });

    test('is secured however its first record comes, and delivers what came behind it', async (t) => {
      const all = await accepted(t);
      const { owner, connection, client } = all;
      // A client over a pair of streams, whose first bytes are cut to pieces.
      const relay = createServer().listen(0, '127.0.0.1');
      await once(relay, 'listening');
      const relayed = once(relay, 'connection');
      const far = connect({
        port: (relay.address() as { port: number }).port,
        host: '127.0.0.1',
        rejectUnauthorized: false,
      }).on('error', () => {});
      t.after(() => far.destroy());
      const [between] = (await relayed) as [Socket];
      relay.close();
      const [hello] = (await once(between, 'data')) as [Buffer];
      for (let at = 0; at < hello.length; at += 100) await sent(all, hello.subarray(at, at + 100));
      between.pipe(client).pipe(between);
      await once(far, 'secureConnect');
      far.write('hello');
      await eventually(() => owner.events.includes('secured'), 'secured');
      assert.equal(owner.made, 1);
      const [bytes] = (await once(connection.socket, 'data')) as [Buffer];
      assert.equal(bytes.toString(), 'hello');
      assert.equal(connection.tls?.version, 'TLSv1.3');
      assert.deepEqual(owner.events, ['ended', 'secured']);
    });

    for (const [name, bytes, code, text] of [
      ['speaks HTTP', 'GET / HTTP/1.1\r\n\r\n', 'ERR_SSL_HTTP_REQUEST', 'http request'],
      ['is garbage', '\xff'.repeat(600), 'ERR_SSL_WRONG_VERSION_NUMBER', 'wrong version number'],
    ] as const) {
      test(`fails where it ${name}, and OpenSSL has no part in it`, async (t) => {
        const all = await accepted(t);
        const { owner, connection, client } = all;
        client.write(bytes, 'latin1');
        client.write(HELLO);
        await once(client.resume(), 'close');
        await eventually(() => owner.events.includes('closed'), 'closed');
        assert.deepEqual(owner.events, ['ended', `failed: ${code}`, 'unsecured', 'closed']);
        assert.equal(connection.transportFailure, `TLS_error:|${text}:TLS_error_end`);
        assert.equal(owner.made, 0);
      });
    }

    test('fails where its client leaves in the middle of the first record', async (t) => {
      const all = await accepted(t);
      const { owner, connection, client } = all;
      client.end(HELLO.subarray(0, 20));
      await eventually(() => owner.events.includes('closed'), 'closed');
      const left = 'the client has left before the handshake was done';
      assert.deepEqual(owner.events, ['ended', `failed: ${left}`, 'unsecured', 'closed']);
      assert.equal(connection.transportFailure, `TLS_error:|${left}:TLS_error_end`);
    });

    test('fails where its client resets it there', async (t) => {
      const all = await accepted(t);
      await sent(all, HELLO.subarray(0, 20));
      all.client.resetAndDestroy();
      await eventually(() => all.owner.events.includes('closed'), 'closed');
      assert.deepEqual(all.owner.events, ['ended', 'failed: ECONNRESET', 'unsecured', 'closed']);
    });

    test('has not failed where its client has said nothing', async (t) => {
      const { owner, client } = await accepted(t);
      client.end();
      await eventually(() => owner.events.includes('closed'), 'closed');
      assert.deepEqual(owner.events, ['ended', 'unsecured', 'closed']);
    });

    for (const [when, bytes] of [
      ['before its first record', HELLO.subarray(0, 20)],
      ['behind it', HALF_HELLO],
    ] as const) {
      test(`ends when its time is over, ${when}`, async (t) => {
        const all = await accepted(t);
        await sent(all, bytes);
        all.handshake.onTooLate();
        await eventually(() => all.owner.events.includes('closed'), 'closed');
        assert.deepEqual(all.owner.events, ['timeout', 'ended', 'unsecured', 'closed']);
        assert.equal(all.connection.transportFailure, 'the handshake took too long');
      });

      test(`ends with the listener, ${when}`, async (t) => {
        const all = await accepted(t);
        await sent(all, bytes);
        all.handshake.destroy();
        await eventually(() => all.owner.events.includes('closed'), 'closed');
        assert.deepEqual(all.owner.events, ['ended', 'unsecured', 'closed']);
      });
    }

    test('is secured when its turn comes, and is not read before', async (t) => {
      const all = await accepted(t);
      const { owner, client, connection, raw } = all;
      const queue = new Queue();
      Object.defineProperty(owner.context, 'handshakes', { value: queue });
      const far = connect({ socket: client, rejectUnauthorized: false }).on('error', () => {});
      t.after(() => far.destroy());
      await eventually(() => queue.waiting.length === 1, 'its place in the queue');
      const { bytesRead } = raw;
      assert.equal(owner.made, 0);
      // Behind the first record; the client's own would come with its second message.
      client.write(Buffer.alloc(100_000));
      await turns(20);
      assert.ok(raw.bytesRead <= bytesRead + 65_536, `${raw.bytesRead} bytes read`);
      // A read that was under way when it was stopped.
      assert.equal(all.handshake.onBytes(Buffer.from('more'), 4), false);
      assert.equal(queue.waiting.length, 1);
      queue.begin();
      assert.equal(owner.made, 1);
      await eventually(() => owner.events.includes('closed'), 'the end');
      assert.notEqual(connection.socket, raw);
      assert.match(owner.events.join(), /^ended,failed: ERR_SSL_/);
    });

    test('goes on where it has stopped when its turn comes', async (t) => {
      const all = await accepted(t);
      const { owner, client, connection } = all;
      const queue = new Queue();
      Object.defineProperty(owner.context, 'handshakes', { value: queue });
      const far = connect({ socket: client, rejectUnauthorized: false });
      t.after(() => far.destroy());
      await eventually(() => queue.waiting.length === 1, 'its place in the queue');
      await turns(5);
      queue.begin();
      await once(far, 'secureConnect');
      far.write('hello');
      await eventually(() => owner.events.includes('secured'), 'secured');
      const [bytes] = (await once(connection.socket, 'data')) as [Buffer];
      assert.equal(bytes.toString(), 'hello');
      assert.deepEqual(queue.waiting, []);
    });

    for (const [how, end, event] of [
      ['its time is over', (handshake: Handshake) => handshake.onTooLate(), ['timeout']],
      ['its listener goes', (handshake: Handshake) => handshake.destroy(), []],
    ] as const) {
      test(`leaves the queue when ${how}, and does not begin on the way out`, async (t) => {
        const all = await accepted(t);
        const { owner } = all;
        const queue = new Queue();
        Object.defineProperty(owner.context, 'handshakes', { value: queue });
        await sent(all, HELLO);
        assert.equal(queue.waiting.length, 1);
        end(all.handshake);
        queue.waiting[0]!.begin();
        await eventually(() => owner.events.includes('closed'), 'closed');
        assert.deepEqual(owner.events, [...event, 'ended', 'unsecured', 'closed']);
        assert.equal(owner.made, 0);
        assert.deepEqual(queue.waiting, []);
      });
    }

    test('ends where a fault of ours keeps it from beginning', async (t) => {
      const all = await accepted(t);
      all.owner.fault = new Error('deliberate');
      all.client.write(HELLO);
      await eventually(() => all.owner.events.includes('closed'), 'closed');
      assert.deepEqual(all.owner.events, ['fault: deliberate', 'ended', 'unsecured', 'closed']);
      assert.ok(all.raw.destroyed);
    });

    test('ends where there are no settings to begin with', async (t) => {
      const all = await accepted(t);
      Object.defineProperty(all.owner, 'optionsFor', {
        value: () => {
          throw new Error('deliberate');
        },
      });
      all.client.write(HELLO);
      await eventually(() => all.owner.events.includes('closed'), 'closed');
      assert.deepEqual(all.owner.events, ['fault: deliberate', 'ended', 'unsecured', 'closed']);
      assert.ok(all.raw.destroyed);
    });
  });
}
