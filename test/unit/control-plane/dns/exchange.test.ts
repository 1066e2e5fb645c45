// One question to one server at a time: what a connection may do to the answer, and sockets of both families.

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import {
  type DnsServerAddress,
  type DnsTransport,
  type ExchangeOutcome,
  startExchange,
} from '../../../../src/control-plane/dns/exchange.ts';
import { answerWith, DnsServer, record, v4Bytes } from '../../../support/dns-server.ts';
import { NO_FAULTS } from '../../../support/faults.ts';

const TYPE_A = 1;
const TRUNCATED = 0x0200;
/** The name of the question. */
const OWN_NAME = Buffer.from([0xc0, 0x0c]);
const QUESTION = { id: 4711, name: 'web.test', type: 'A' } as const;
const ONE_ADDRESS: ExchangeOutcome = { kind: 'addresses', addresses: [{ ip: '10.0.0.1', ttlSeconds: 7 }] };

function ask(transport: DnsTransport, server: DnsServerAddress): Promise<ExchangeOutcome> {
  return new Promise((resolve) => startExchange(transport, server, QUESTION, NO_FAULTS, resolve));
}

/** The true answer to a query without its length. */
function trueAnswer(query: Buffer): Buffer {
  return answerWith(query, [record(OWN_NAME, TYPE_A, 7, v4Bytes('10.0.0.1'))]);
}

function withLength(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/** A TCP server; told each connection with its query. */
async function startTcpServer(t: TestContext, serve: (socket: Socket, query: Buffer) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (query: Buffer) => serve(socket, query.subarray(2)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { ip: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

describe('a question over TCP', () => {
  it('is sent whole behind its length', async (t) => {
    const { promise, resolve } = Promise.withResolvers<Buffer>();
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', (bytes: Buffer) => {
        resolve(bytes);
        socket.destroy();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    await ask('tcp', { ip: '127.0.0.1', port: (server.address() as AddressInfo).port });
    const name = Buffer.from('\x03web\x04test\0');
    const head = Buffer.from([0x12, 0x67, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    const message = Buffer.concat([head, name, Buffer.from([0, 1, 0, 1])]);
    assert.deepEqual(await promise, withLength(message));
  });

  it('is answered by a message that comes byte by byte', async (t) => {
    const server = await startTcpServer(t, async (socket, query) => {
      socket.setNoDelay(true);
      for (const byte of withLength(trueAnswer(query))) {
        socket.write(Buffer.from([byte]));
        // Between the two all sockets are looked at.
        for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
      }
    });
    assert.deepEqual(await ask('tcp', server), ONE_ADDRESS);
  });

  it('is answered by the first message alone', async (t) => {
    const server = await startTcpServer(t, (socket, query) => {
      socket.write(Buffer.concat([withLength(trueAnswer(query)), withLength(Buffer.alloc(100))]));
    });
    assert.deepEqual(await ask('tcp', server), ONE_ADDRESS);
  });

  it('is answered by no more than the message that the length announces', async (t) => {
    const server = await startTcpServer(t, (socket, query) => {
      const answer = trueAnswer(query);
      socket.write(Buffer.concat([withLength(answer.subarray(0, -3)), answer.subarray(-3)]));
    });
    assert.deepEqual(await ask('tcp', server), { kind: 'refusal', reason: 'a damaged answer' });
  });

  it('fails at once at an empty message', async (t) => {
    const server = await startTcpServer(t, (socket) => socket.write(withLength(Buffer.alloc(0))));
    assert.deepEqual(await ask('tcp', server), { kind: 'refusal', reason: 'an answer to another question' });
  });

  it('fails when the connection ends before the answer does', async (t) => {
    const server = await startTcpServer(t, (socket, query) =>
      socket.end(withLength(trueAnswer(query)).subarray(0, -1)),
    );
    const reason = 'a connection closed before the answer';
    assert.deepEqual(await ask('tcp', server), { kind: 'refusal', reason });
  });

  it('fails with the reason of the system when the connection is reset', async (t) => {
    const server = await startTcpServer(t, (socket) => socket.resetAndDestroy());
    assert.deepEqual(await ask('tcp', server), { kind: 'refusal', reason: 'ECONNRESET' });
  });

  it('fails when even this answer is cut off', async (t) => {
    const server = await startTcpServer(t, (socket, query) => {
      const answer = trueAnswer(query);
      answer.writeUInt16BE(answer.readUInt16BE(2) | TRUNCATED, 2);
      socket.write(withLength(answer));
    });
    const reason = 'an answer cut off even over TCP';
    assert.deepEqual(await ask('tcp', server), { kind: 'refusal', reason });
  });

  it('leaves no connection behind when it has been answered', async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const server = await startTcpServer(t, (socket, query) => {
      socket.once('close', () => resolve());
      socket.write(withLength(trueAnswer(query)));
    });
    await ask('tcp', server);
    await promise;
  });
});

describe('a question over UDP', () => {
  it('goes to servers with addresses of either family', async (t) => {
    for (const [type, ip] of [
      ['udp4', '127.0.0.1'],
      ['udp6', '::1'],
    ] as const) {
      const server = createSocket(type);
      t.after(() => server.close());
      server.bind(0, ip);
      await once(server, 'listening');
      server.on('message', (query, { port, address }) => server.send(trueAnswer(query), port, address));
      assert.deepEqual(await ask('udp', { ip, port: server.address().port }), ONE_ADDRESS);
    }
  });

  it('fails with the reason of the system where nobody listens', async () => {
    const gone = await DnsServer.start();
    const { port } = gone;
    await gone.close();
    assert.deepEqual(await ask('udp', { ip: '127.0.0.1', port }), { kind: 'refusal', reason: 'ECONNREFUSED' });
  });
});

describe('a question to a server that the system cannot reach', () => {
  for (const transport of ['udp', 'tcp'] as const) {
    it(`fails with its reason over ${transport.toUpperCase()}`, async () => {
      const outcome = await ask(transport, { ip: '255.255.255.255', port: 53 });
      assert.equal(outcome.kind, 'refusal');
      assert.match(outcome.kind === 'refusal' ? outcome.reason : '', /^E(?:ACCES|NETUNREACH)$/);
    });
  }
});

describe('a question that is given up', () => {
  for (const transport of ['udp', 'tcp'] as const) {
    it(`over ${transport.toUpperCase()} tells nothing, at whatever moment`, async () => {
      await using server = await DnsServer.start();
      server.set('web.test', ['10.0.0.1'], 7);
      const address = { ip: '127.0.0.1', port: server.port };
      for (let steps = 0; steps < 20; steps++) {
        let outcomes = 0;
        const exchange = startExchange(transport, address, QUESTION, NO_FAULTS, () => outcomes++);
        const before = await new Promise<number>((resolve) => {
          afterSteps(steps, () => {
            resolve(outcomes);
            exchange.close();
            exchange.close();
          });
        });
        // Another one takes as long as this one would have taken.
        await ask(transport, address);
        assert.equal(outcomes, before);
      }
    });
  }
});

/** Among the steps that a socket takes on its way: those within a turn of the event loop first, then some turns. */
function afterSteps(steps: number, then: () => void): void {
  if (steps > 10) setImmediate(() => afterSteps(steps - 1, then));
  else if (steps > 0) process.nextTick(() => afterSteps(steps - 1, then));
  else then();
}
