// What a writer sends: the same bytes whatever way they take, and memory that is the caller's again when it says so.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { SocketWriter } from '../../../../src/data-plane/network/socket-writer.ts';

const HEAD = 'HTTP/1.1 200 \xe9\r\n\r\n';
/** Below and above what goes as a string, and what fits into the scratch buffer. */
const LENGTHS = [0, 1, 2048 - HEAD.length, 2049 - HEAD.length, 100_000, 144 * 1024 - HEAD.length, 144 * 1024, 500_000];

interface Pair {
  readonly near: Socket;
  /** Nobody reads it before the test. */
  readonly far: Socket;
  readonly arrived: (bytes: number) => Promise<Buffer>;
}

async function pair(t: TestContext): Promise<Pair> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const near = connect({ port, host: '127.0.0.1', highWaterMark: 1 } as Parameters<typeof connect>[0] & object);
  const [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'connect')])) as [[Socket], unknown];
  t.after(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  const arrived = async (bytes: number): Promise<Buffer> => {
    const chunks: Buffer[] = [];
    let length = 0;
    far.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      far.emit('more');
    });
    far.resume();
    while (length < bytes) await once(far, 'more');
    return Buffer.concat(chunks);
  };
  return { near, far, arrived };
}

/** Bytes that differ from place to place. */
function body(length: number): Buffer {
  const bytes = Buffer.from(new ArrayBuffer(length));
  for (let index = 0; index < length; index++) bytes[index] = (index * 7) % 251;
  return bytes;
}

type Send = (writer: SocketWriter, near: Socket, bytes: Buffer, start: number, end: number) => void;

/** Memory that is the caller's again is overwritten at once. */
const SENDS: Readonly<Record<string, Send>> = {
  copied: (writer, near, bytes, start, end) => {
    writer.copied(near, HEAD, bytes, start, end);
    bytes.fill(0);
  },
  owned: (writer, near, bytes, start, end) => void writer.owned(near, HEAD, bytes, start, end),
  pinned: (writer, near, bytes, start, end) => {
    if (writer.pinned(near, HEAD, bytes, start, end, '')) bytes.fill(0);
  },
};

for (const [name, send] of Object.entries(SENDS)) {
  test(`a head and a part of a body arrive as they were: ${name}`, async (t) => {
    const { near, arrived } = await pair(t);
    const writer = new SocketWriter();
    const expected: Buffer[] = [];
    // More than the kernel takes at once, so that some of it waits.
    for (let round = 0; round < 20; round++) {
      for (const length of LENGTHS) {
        const bytes = body(length + 12);
        expected.push(Buffer.from(HEAD, 'latin1'), Buffer.from(bytes.subarray(5, 5 + length)));
        send(writer, near, bytes, 5, 5 + length);
      }
    }
    const all = Buffer.concat(expected);
    assert.ok((await arrived(all.length)).equals(all));
  });
}

test('a head alone, a body alone and texts around a body arrive as they were', async (t) => {
  const { near, arrived } = await pair(t);
  const writer = new SocketWriter();
  const bytes = body(20_000);
  const expected = Buffer.concat([
    Buffer.from('text \xe9', 'latin1'),
    Buffer.from('head'),
    bytes.subarray(10, 30),
    bytes.subarray(0, 20_000),
    Buffer.from('before'),
    bytes.subarray(3, 9),
    Buffer.from('after'),
    Buffer.from('before \xe9', 'latin1'),
    Buffer.from('after \xe9', 'latin1'),
    bytes,
  ]);
  assert.ok(writer.text(near, 'text \xe9'));
  assert.ok(writer.copied(near, 'head', bytes, 7, 7));
  assert.ok(writer.copied(near, '', bytes, 10, 30));
  assert.ok(writer.copied(near, '', bytes, 0, 20_000));
  assert.ok(writer.pinned(near, 'before', bytes, 3, 9, 'after'));
  assert.ok(writer.pinned(near, 'before \xe9', bytes, 3, 3, 'after \xe9'));
  assert.ok(writer.owned(near, '', bytes, 0, 20_000));
  assert.ok((await arrived(expected.length)).equals(expected));
});

type Piece = string | Buffer;

/** What goes to the kernel: the pieces of each system call, and how large the memory was that each lay in. */
function systemCallsOf(t: TestContext, near: Socket) {
  const calls: Piece[][] = [];
  const memory: (number | 'text')[][] = [];
  const note = (pieces: readonly Piece[], done: () => void): void => {
    calls.push([...pieces]);
    memory.push(pieces.map((piece) => (typeof piece === 'string' ? 'text' : piece.buffer.byteLength)));
    done();
  };
  t.mock.method(near, '_write', (piece: Piece, _encoding: string, done: () => void) => note([piece], done));
  t.mock.method(
    near as Required<Pick<Socket, '_writev'>>,
    '_writev',
    (pieces: readonly { chunk: Piece }[], done: () => void) =>
      note(
        pieces.map(({ chunk }) => chunk),
        done,
      ),
  );
  return { calls, memory };
}

describe('what waits for the kernel keeps no more memory than it needs', () => {
  const KB = 1024;
  const most = 144 * KB;
  for (const [total, memory] of [
    [HEAD.length + 1, 'text'],
    [2 * KB, 'text'],
    [2 * KB + 1, 8 * KB],
    [8 * KB, 8 * KB],
    [8 * KB + 1, 32 * KB],
    [32 * KB, 32 * KB],
    [32 * KB + 1, most],
    [most, most],
    [most + 1, most + 1],
  ] as const) {
    test(`copied with a head, ${total} bytes`, async (t) => {
      const { near } = await pair(t);
      const sent = systemCallsOf(t, near);
      const length = total - HEAD.length;
      new SocketWriter().copied(near, HEAD, body(length + 7), 7, 7 + length);
      assert.deepEqual(sent.memory, [[memory]]);
    });
  }

  test('a long head alone: none', async (t) => {
    const { near } = await pair(t);
    const sent = systemCallsOf(t, near);
    new SocketWriter().copied(near, 'h'.repeat(3 * KB), body(10), 7, 7);
    assert.deepEqual(sent.memory, [['text']]);
  });

  for (const [start, total, memory] of [
    [7, most, [most]],
    [7, most + 1, ['text', most + 1 - HEAD.length + 7]],
    [0, most + 1, ['text', most + 1 - HEAD.length]],
  ] as const) {
    test(`given away behind a head, ${total} bytes from ${start} on`, async (t) => {
      const { near } = await pair(t);
      const sent = systemCallsOf(t, near);
      const length = total - HEAD.length;
      new SocketWriter().owned(near, HEAD, body(start + length), start, start + length);
      assert.deepEqual(sent.memory, [memory]);
    });
  }

  test('given away without a head: none', async (t) => {
    const { near } = await pair(t);
    const { calls } = systemCallsOf(t, near);
    const bytes = body(3 * KB);
    new SocketWriter().owned(near, '', bytes, 10, bytes.length);
    assert.deepEqual(calls, [[bytes.subarray(10)]]);
    assert.equal((calls[0]![0]! as Buffer).buffer, bytes.buffer);
  });
});

describe('texts and the bytes between them go in one system call, without pieces that are empty', () => {
  const bytes = body(100);
  const part = bytes.subarray(3, 9);
  for (const [before, end, after, pieces] of [
    ['before \xe9', 9, 'after \xe9', ['before \xe9', part, 'after \xe9']],
    ['before', 9, '', ['before', part]],
    ['', 9, 'after', [part, 'after']],
    ['before', 3, 'after', ['before', 'after']],
    ['', 9, '', [part]],
  ] as const) {
    test(`'${before}', ${end - 3} bytes, '${after}'`, async (t) => {
      const { near } = await pair(t);
      const { calls } = systemCallsOf(t, near);
      const cork = t.mock.method(near, 'cork');
      assert.ok(new SocketWriter().pinned(near, before, bytes, 3, end, after));
      assert.deepEqual(calls, [[...pieces]]);
      assert.equal(cork.mock.callCount(), pieces.length === 1 ? 0 : 1);
    });
  }
});

describe('a writer says that a part waits', () => {
  for (const [name, write] of Object.entries({
    text: (writer: SocketWriter, near: Socket, bytes: Buffer) => writer.text(near, bytes.toString('latin1')),
    copied: (writer: SocketWriter, near: Socket, bytes: Buffer) => writer.copied(near, HEAD, bytes, 0, bytes.length),
    owned: (writer: SocketWriter, near: Socket, bytes: Buffer) => writer.owned(near, HEAD, bytes, 0, bytes.length),
    pinned: (writer: SocketWriter, near: Socket, bytes: Buffer) =>
      writer.pinned(near, HEAD, bytes, 0, bytes.length, 'after'),
  })) {
    for (const length of [100_000, 300_000]) {
      test(`until the kernel has it: ${name} of ${length} bytes`, async (t) => {
        const { near, arrived } = await pair(t);
        const writer = new SocketWriter();
        let sent = near.bytesWritten;
        while (write(writer, near, body(length))) {
          assert.equal(near.writableLength, 0);
          sent = near.bytesWritten;
        }
        assert.ok(near.writableLength > 0);
        await Promise.all([once(near, 'drain'), arrived(sent)]);
        assert.equal(near.writableLength, 0);
      });
    }
  }
});
