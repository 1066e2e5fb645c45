// The memory of uploads: freed when the kernel has taken it, and not a moment earlier.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { freeGiven } from '../../../../src/data-plane/network/given-memory.ts';
import { SocketWriter } from '../../../../src/data-plane/network/socket-writer.ts';

const READ_BYTES = 16 * 1024;

/** As Node hands over what it has read: a buffer with memory of its own. */
function readOf(length: number, fill = 'r'): Buffer {
  return Buffer.from(new ArrayBuffer(length)).fill(fill);
}

interface SocketPair extends Disposable {
  readonly near: Socket;
  readonly far: Socket;
}

async function socketPair(): Promise<SocketPair> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const near = connect({ port, host: '127.0.0.1', highWaterMark: 1 } as Parameters<typeof connect>[0] & object);
  const [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'connect')])) as [[Socket], unknown];
  server.close();
  return {
    near,
    far,
    [Symbol.dispose]() {
      near.destroy();
      far.destroy();
    },
  };
}

async function readBytes(socket: Socket, length: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let received = 0;
  for await (const chunk of socket) {
    chunks.push(chunk as Buffer);
    received += (chunk as Buffer).length;
    if (received >= length) break;
  }
  return Buffer.concat(chunks);
}

describe('memory that was given away', () => {
  test('is freed with its last bytes once the kernel has them, and these arrive', async () => {
    using pair = await socketPair();
    const writer = new SocketWriter();
    const read = readOf(READ_BYTES);
    const arrival = readBytes(pair.far, READ_BYTES);
    assert.equal(writer.owned(pair.near, '', read, 0, 1000), true);
    assert.equal(read.length, READ_BYTES, 'more of it is to come');
    assert.equal(writer.owned(pair.near, '', read, 1000, READ_BYTES), true);
    assert.equal(read.length, 0);
    assert.deepEqual(await arrival, Buffer.alloc(READ_BYTES, 'r'));
  });

  test('is freed when it went out behind a head', async () => {
    using pair = await socketPair();
    const read = readOf(READ_BYTES);
    const arrival = readBytes(pair.far, 4 + READ_BYTES);
    assert.equal(new SocketWriter().owned(pair.near, 'head', read, 0, READ_BYTES), true);
    assert.equal(read.length, 0);
    assert.deepEqual(await arrival, Buffer.concat([Buffer.from('head'), Buffer.alloc(READ_BYTES, 'r')]));
  });

  test('stays while the kernel has not taken it', async () => {
    using pair = await socketPair();
    const writer = new SocketWriter();
    let sent = 0;
    let last: Buffer;
    let isTaken: boolean;
    do {
      last = readOf(1024 * 1024, 'x');
      isTaken = writer.owned(pair.near, '', last, 0, last.length);
      sent += 1024 * 1024;
    } while (isTaken);
    assert.equal(last.length, 1024 * 1024);
    const [arrived] = await Promise.all([readBytes(pair.far, sent), once(pair.near, 'drain')]);
    assert.ok(arrived.every((byte) => byte === 'x'.charCodeAt(0)));
    freeGiven(last);
    assert.equal(last.length, 0);
  });

  test('is left alone when it is short, shared, or a part of a larger buffer', () => {
    const short = readOf(1000);
    const part = readOf(2 * READ_BYTES).subarray(0, READ_BYTES);
    const shared = Buffer.from(new SharedArrayBuffer(READ_BYTES));
    for (const bytes of [short, part, shared]) {
      const { length } = bytes;
      freeGiven(bytes);
      assert.equal(bytes.length, length);
    }
  });
});
