// Accepted sockets and their owners, in both ways of reading: what an owner is told, how it stops the bytes, and how a
// socket changes hands. Real sockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import {
  ACCEPTED_SOCKET_OPTIONS,
  attachAccepted,
  passOn,
  passOnLater,
  releaseAccepted,
  resumeAccepted,
  type SocketOwner,
} from '../../../../src/data-plane/network/socket-events.ts';
import { eventually } from '../../../support/eventually.ts';
import { peerEnd, sendsAtOnce, WireClient } from '../../../support/wire.ts';

setFlagsFromString('--allow-natives-syntax');
const hasFastProperties = runInThisContext('(object) => %HasFastProperties(object)') as (object: object) => boolean;

/** Notes what it is told. */
class Owner implements SocketOwner {
  readonly events: string[] = [];
  text = '';
  /** Whether more bytes are welcome. */
  goesOn = true;
  /** Throws there. */
  broken = '';

  onBytes(chunk: Buffer, length: number): boolean {
    this.text += chunk.toString('latin1', 0, length);
    this.#note('bytes');
    return this.goesOn;
  }

  onEnd(): void {
    this.#note('end');
  }

  onDrain(): void {
    this.#note('drain');
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    this.#note(`close ${error?.code ?? ''}`.trim());
  }

  onFault(error: unknown): void {
    this.events.push(`fault: ${(error as Error).message}`);
  }

  count(event: string): number {
    return this.events.filter((each) => each === event).length;
  }

  has(event: string): Promise<void> {
    return eventually(() => this.events.includes(event), `${event} among ${this.events.join()}`);
  }

  #note(event: string): void {
    this.events.push(event);
    if (event.startsWith(this.broken) && this.broken !== '') throw new Error('deliberate');
  }
}

const WAYS = {
  lean: { readMode: 'lean', memory: null },
  events: { readMode: 'events', memory: null },
  'lean, borrowing': { readMode: 'lean', memory: Buffer.alloc(64 * 1024) },
  'events, if it could borrow': { readMode: 'events', memory: Buffer.alloc(64 * 1024) },
} as const;

for (const [way, { readMode, memory }] of Object.entries(WAYS)) {
  async function accepted(t: TestContext): Promise<{ owner: Owner; socket: Socket; client: WireClient }> {
    const owner = new Owner();
    const server = createServer(ACCEPTED_SOCKET_OPTIONS, (socket) => {
      const isBorrowed = attachAccepted(socket, owner, readMode, memory);
      assert.equal(isBorrowed, memory !== null && readMode === 'lean');
    });
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
    return { owner, socket, client };
  }

  describe(`the owner of an accepted socket, reading by ${way}`, () => {
    test('hears of bytes, of the end, of what was sent, and of the close', async (t) => {
      const { owner, socket, client } = await accepted(t);
      assert.ok(sendsAtOnce(socket));
      client.write('hello');
      await eventually(() => owner.text === 'hello', 'the bytes');
      client.socket.end(' there');
      await owner.has('end');
      assert.equal(owner.text, 'hello there');
      client.socket.pause();
      while (socket.write(Buffer.alloc(256 * 1024)));
      assert.equal(owner.count('drain'), 0);
      client.socket.resume();
      await owner.has('drain');
      socket.end();
      await owner.has('close');
      assert.deepEqual(owner.events.slice(-3), ['end', 'drain', 'close']);
    });

    test('hears nothing more once the socket goes under another one, where it takes no more memory than before', async (t) => {
      const { owner, socket, client } = await accepted(t);
      client.write('x');
      await owner.has('bytes');
      assert.ok(hasFastProperties(socket));
      releaseAccepted(socket);
      assert.ok(hasFastProperties(socket), 'V8 keeps its properties in a dictionary');
      assert.equal(socket.push, Socket.prototype.push);
      socket.unshift('y');
      assert.equal(String(socket.read()), 'y');
      assert.equal(owner.text, 'x');
    });

    test('hears what has broken the connection', async (t) => {
      const { owner, client } = await accepted(t);
      client.write('x');
      await owner.has('bytes');
      client.socket.resetAndDestroy();
      await owner.has('close ECONNRESET');
    });

    test('gets nothing more once it has asked to stop, and all of it when it goes on', async (t) => {
      const { owner, socket, client } = await accepted(t);
      owner.goesOn = false;
      client.write('first');
      await owner.has('bytes');
      client.write(' second');
      client.socket.end();
      // The system has it by now.
      await once(client.socket, 'finish');
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      assert.equal(owner.text, 'first');
      assert.deepEqual(owner.events, ['bytes']);
      owner.goesOn = true;
      resumeAccepted(socket, readMode);
      assert.equal(owner.text, 'first');
      await owner.has('end');
      assert.equal(owner.text, 'first second');
    });

    for (const [event, act] of Object.entries({
      bytes: ({ client }) => void client.write('x'),
      end: ({ client }) => void client.socket.end(),
      drain: async ({ client, socket }) => {
        while (socket.write(Buffer.alloc(256 * 1024)));
        client.socket.resume();
      },
    } satisfies Record<string, (opened: Awaited<ReturnType<typeof accepted>>) => void>)) {
      test(`that throws at ${event} costs this connection only, which is broken off`, async (t) => {
        const opened = await accepted(t);
        const { owner, client } = opened;
        if (event === 'drain') client.socket.pause();
        owner.broken = event;
        const ended = event === 'drain' ? null : peerEnd(client.socket);
        act(opened);
        await owner.has('fault: deliberate');
        await owner.has('close');
        assert.equal(owner.count('fault: deliberate'), 1);
        if (ended !== null) assert.equal(await ended, 'ECONNRESET');
      });
    }

    test('that throws at the close is told of its fault', async (t) => {
      const { owner, socket } = await accepted(t);
      owner.broken = 'close';
      socket.destroy();
      await owner.has('fault: deliberate');
    });

    test('may be another one from some moment on', async (t) => {
      const { owner, socket, client } = await accepted(t);
      client.write('one');
      await owner.has('bytes');
      const next = new Owner();
      attachAccepted(socket, next, readMode, memory);
      client.write('two');
      await next.has('bytes');
      assert.equal(next.text, 'two');
      client.socket.end();
      await next.has('end');
      socket.end();
      await next.has('close');
      assert.deepEqual(owner.events, ['bytes']);
      assert.deepEqual(next.events, ['bytes', 'end', 'close']);
    });

    test('gets the bytes that an earlier one has read', async (t) => {
      const { owner, socket, client } = await accepted(t);
      assert.equal(passOn(socket, Buffer.from('early')), true);
      assert.equal(passOn(socket, Buffer.alloc(0)), true);
      owner.goesOn = false;
      assert.equal(passOn(socket, Buffer.from(' bytes')), false);
      assert.equal(owner.text, 'early bytes');
      assert.equal(owner.count('bytes'), 2);
      passOnLater(socket, Buffer.from(' later'), readMode);
      assert.equal(owner.text, 'early bytes later');
      client.write(' behind');
      if (readMode === 'events') {
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
        assert.equal(owner.text, 'early bytes later');
        resumeAccepted(socket, readMode);
      }
      await eventually(() => owner.text === 'early bytes later behind', 'the rest');
      owner.goesOn = true;
      resumeAccepted(socket, readMode);
      client.socket.end(', last');
      await owner.has('end');
      assert.equal(owner.text, 'early bytes later behind, last');
    });

    test('goes on after the bytes that an earlier one has read, unless it asks to stop', async (t) => {
      const { owner, socket, client } = await accepted(t);
      passOnLater(socket, Buffer.from('early'), readMode);
      client.socket.end(' and late');
      await owner.has('end');
      assert.equal(owner.text, 'early and late');
    });
  });
}

test('bytes for a socket without an owner go nowhere', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const client = new WireClient((server.address() as { port: number }).port);
  const [socket] = (await accepting) as [Socket];
  t.after(() => {
    client.close();
    socket.destroy();
    server.close();
  });
  assert.equal(passOn(socket, Buffer.from('x')), true);
});
