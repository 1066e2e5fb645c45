// Reads of accepted sockets into shared memory, and below a limit: how much comes at once, that all of it comes, and what is
// done where Node does not have what this leans on. Real sockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import {
  LimitedReads,
  pushCopy,
  readInto,
  readLimit,
  redirectReads,
} from '../../../../src/data-plane/network/shared-reads.ts';
import { ACCEPTED_SOCKET_OPTIONS } from '../../../../src/data-plane/network/socket-events.ts';
import { eventually } from '../../../support/eventually.ts';
import { WireClient } from '../../../support/wire.ts';

const LIMIT = 4096;

/** Sockets whose reads are limited, with their clients. */
async function limited(t: TestContext, count: number): Promise<{ socket: Socket; client: WireClient }[]> {
  const reads = LimitedReads.below(LIMIT)!;
  const server = createServer(ACCEPTED_SOCKET_OPTIONS, (socket) => assert.ok(reads.apply(socket)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const pairs: { socket: Socket; client: WireClient }[] = [];
  while (pairs.length < count) {
    const accepting = once(server, 'connection');
    const client = new WireClient((server.address() as { port: number }).port);
    const [socket] = (await accepting) as [Socket];
    t.after(() => {
      client.close();
      socket.destroy();
    });
    pairs.push({ socket, client });
  }
  return pairs;
}

function bytes(length: number, first: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, index) => (first + index) % 251));
}

test('a limit is at least a read that is worth it', () => {
  const limits = new Map([
    [0, 1024],
    [1023, 1024],
    [1025, 1025],
    [1_000_000, 1_000_000],
  ]);
  for (const [bufferLimit, limit] of limits) assert.equal(readLimit(bufferLimit), limit);
});

test('what Node reads at once by itself needs no limit', () => {
  assert.equal(LimitedReads.below(64 * 1024), null);
  assert.equal(LimitedReads.below(1024 * 1024), null);
  assert.notEqual(LimitedReads.below(64 * 1024 - 1), null);
});

describe('under a limit', () => {
  test('all comes in pieces of that size at most, which later reads leave alone', async (t) => {
    const pairs = await limited(t, 2);
    const sent = pairs.map((_, index) => bytes(100_000, index));
    const pieces: Buffer[][] = pairs.map(() => []);
    for (const [index, { socket, client }] of pairs.entries()) {
      socket.on('data', (piece: Buffer) => void pieces[index]!.push(piece));
      client.socket.end(sent[index]!);
    }
    await Promise.all(pairs.map(({ socket }) => once(socket, 'end')));
    assert.ok(pieces.flat().every(({ length }) => length <= LIMIT));
    for (const [index, expected] of sent.entries()) assert.ok(Buffer.concat(pieces[index]!).equals(expected));
  });

  test('a stop holds, and the rest comes when reading goes on', async (t) => {
    const [{ socket, client }] = (await limited(t, 1)) as [{ socket: Socket; client: WireClient }];
    const { push } = socket;
    let pushed = 0;
    let goesOn = false;
    socket.push = (piece: Buffer | null): boolean => {
      if (piece === null) return push.call(socket, null);
      pushed += piece.length;
      return goesOn;
    };
    client.write('x'.repeat(3 * LIMIT));
    await eventually(() => pushed > 0, 'the first bytes');
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    assert.ok(pushed <= LIMIT);
    goesOn = true;
    push.call(socket, Buffer.alloc(0));
    await eventually(() => pushed === 3 * LIMIT, 'the rest');
  });
});

describe('nothing is limited, and nothing changed, where a socket', () => {
  const keys = Object.getOwnPropertySymbols(new Socket());
  const [kBuffer, kBufferCb] = ['kBuffer', 'kBufferCb'].map(
    (name) => keys.find((key) => key.description === name)!,
  ) as [symbol, symbol];
  const used: Uint8Array[] = [];
  const _handle = { useUserBuffer: (buffer: Uint8Array) => void used.push(buffer) };
  const whole = { [kBuffer]: null, [kBufferCb]: null, _handle };

  for (const [what, socket] of Object.entries<object>({
    'has no place for a buffer': { [kBufferCb]: null, _handle },
    'has no place for a callback': { [kBuffer]: null, _handle },
    'is over': { ...whole, _handle: null },
    'has no handle': { [kBuffer]: null, [kBufferCb]: null },
    'has a handle that takes no buffer': { ...whole, _handle: {} },
    'has other places alone': { [Symbol('kBufferGen')]: null, [Symbol('other')]: null, _handle },
  })) {
    test(what, () => {
      const before = { ...socket };
      assert.equal(LimitedReads.below(LIMIT)!.apply(socket as Socket), false);
      assert.deepEqual(socket, before);
      assert.equal(used.length, 0);
    });
  }

  test('is none of these, it is limited', () => {
    const socket = { ...whole };
    assert.ok(LimitedReads.below(LIMIT)!.apply(socket as unknown as Socket));
    assert.deepEqual(
      used.map(({ length }) => length),
      [LIMIT],
    );
    used.pop();
  });
});

describe('what a socket reads', () => {
  async function accepted(t: TestContext): Promise<{ socket: Socket; client: WireClient }> {
    const server = createServer(ACCEPTED_SOCKET_OPTIONS);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const accepting = once(server, 'connection');
    const client = new WireClient((server.address() as { port: number }).port);
    const [socket] = (await accepting) as [Socket];
    t.after(() => {
      client.close();
      socket.destroy();
      server.close();
    });
    return { socket, client };
  }

  test('lies in the memory that was given first, whoever gets it', async (t) => {
    const { socket, client } = await accepted(t);
    const [first, second] = [Buffer.alloc(8), Buffer.alloc(8)];
    const reads: string[] = [];
    const noteAs =
      (name: string) =>
      (length: number, buffer: Buffer): boolean => {
        assert.equal(buffer, first);
        reads.push(`${name} ${buffer.toString('latin1', 0, length)}`);
        return true;
      };
    assert.ok(readInto(socket, first, noteAs('one')));
    client.write('a');
    await eventually(() => reads.length === 1, 'a read');
    assert.ok(readInto(socket, second, noteAs('two')));
    client.write('b');
    await eventually(() => reads.length === 2, 'a read');
    assert.ok(redirectReads(socket, noteAs('three')));
    client.write('c');
    await eventually(() => reads.length === 3, 'a read');
    assert.deepEqual(reads, ['one a', 'two b', 'three c']);
  });

  test('goes by copies to whoever keeps it', async (t) => {
    const { socket, client } = await accepted(t);
    const pieces: Buffer[] = [];
    socket.on('data', (piece: Buffer) => void pieces.push(piece));
    const memory = Buffer.alloc(8);
    assert.ok(readInto(socket, memory, pushCopy));
    client.write('abc');
    await eventually(() => pieces.length === 1, 'a read');
    memory.fill('z');
    assert.equal(pieces[0]!.toString(), 'abc');
  });

  test('may begin to lie there within a read', async (t) => {
    const { socket, client } = await accepted(t);
    const memory = Buffer.alloc(8);
    let text = '';
    socket.once('data', (piece: Buffer) => {
      text += piece.toString();
      readInto(socket, memory, (length, buffer) => {
        text += buffer.toString('latin1', 0, length);
        return true;
      });
      client.write(' and later');
    });
    client.write('first');
    await eventually(() => text === 'first and later', 'all of it');
  });

  test('goes on as it was where nothing is shared', async (t) => {
    const { socket, client } = await accepted(t);
    assert.equal(
      redirectReads(socket, () => assert.fail()),
      false,
    );
    client.write('x');
    assert.equal(String(await once(socket, 'data')), 'x');
  });
});
