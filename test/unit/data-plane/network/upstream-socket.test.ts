// Sockets to upstreams that stop taking bytes: what is told of it, and what is still read. Real sockets, in both ways of
// reading them.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { descriptorBudget } from '../../../../src/base/descriptor-budget.ts';
import {
  connectUpstream,
  resumeUpstream,
  type UpstreamSocketOwner,
} from '../../../../src/data-plane/network/socket-events.ts';
import { eventually } from '../../../support/eventually.ts';
import { WireUpstream } from '../../../support/wire.ts';

const NO_BUDGET = descriptorBudget(undefined);
const PLAIN = { sourceAddress: undefined, tcpKeepalive: undefined };
const LARGE = Buffer.alloc(8 * 1024 * 1024);

/** Notes what it is told, and reads the first bytes only until it is told to go on. */
class Owner implements UpstreamSocketOwner {
  readonly events: string[] = [];
  onFailure = (): void => {};
  readonly #buffer = Buffer.alloc(1024);
  #isStopped = false;

  get #last(): string {
    return this.events.at(-1) ?? '';
  }

  has(event: string): Promise<void> {
    return eventually(() => this.events.includes(event), `${event} after ${this.#last}`);
  }

  readBuffer(): Buffer {
    return this.#buffer;
  }

  onConnect(): void {
    this.events.push('connect');
  }

  onBytes(chunk: Buffer, length: number): boolean {
    this.events.push(chunk.toString('latin1', 0, length));
    const goesOn = this.#isStopped;
    this.#isStopped = true;
    return goesOn;
  }

  onEnd(): void {
    this.events.push('end');
  }

  onDrain(): void {
    this.events.push('drain');
  }

  onSendFailed(error: NodeJS.ErrnoException): void {
    this.events.push(`send failed: ${error.code}`);
    this.onFailure();
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    this.events.push(`close: ${error?.code}`);
  }

  onFault(error: unknown): void {
    this.events.push(`fault: ${(error as Error).message}`);
  }
}

interface Connection {
  readonly owner: Owner;
  readonly socket: Socket;
  /** The upstream's end. It has said `first`, which has stopped the reading, and has bytes of ours before it, unread. */
  readonly peer: Socket;
}

for (const readMode of ['lean', 'events'] as const) {
  async function connection(t: TestContext): Promise<Connection> {
    const upstream = await WireUpstream.start((accepted) => void accepted.setNoDelay(true).pause());
    const owner = new Owner();
    const socket = connectUpstream(
      { kind: 'ip', ip: '127.0.0.1', port: upstream.port },
      owner,
      { readMode, descriptorBudget: NO_BUDGET },
      PLAIN,
    );
    t.after(async () => {
      socket.destroy();
      await upstream.close();
    });
    await owner.has('connect');
    socket.write(LARGE.subarray(0, 1024 * 1024));
    await eventually(() => upstream.sockets.length > 0, 'the upstream has accepted');
    const peer = upstream.sockets[0]!;
    peer.write('first');
    await owner.has('first');
    return { owner, socket, peer };
  }

  /** Writes until the upstream's close is known. */
  async function write({ owner, socket }: Connection): Promise<void> {
    while (!owner.events.some((event) => event.startsWith('send failed'))) {
      socket.write('more');
      await new Promise(setImmediate);
    }
  }

  /** The same with several pieces at a time. */
  async function writePieces({ owner, socket }: Connection): Promise<void> {
    while (!owner.events.some((event) => event.startsWith('send failed'))) {
      socket.cork();
      socket.write('more');
      socket.write('and more');
      socket.uncork();
      await new Promise(setImmediate);
    }
  }

  describe(`a write that fails, reading by ${readMode}`, () => {
    for (const [pieces, fail] of Object.entries({ 'one piece': write, 'several pieces': writePieces })) {
      test(`leaves what was sent before the close to be read, which ends as it was cut: ${pieces}`, async (t) => {
        const opened = await connection(t);
        const { owner, socket, peer } = opened;
        peer.write('last');
        peer.destroy();
        await fail(opened);
        resumeUpstream(socket);
        await owner.has('close: ECONNRESET');
        const told = owner.events.filter((event) => event !== 'drain');
        assert.deepEqual(told, ['connect', 'first', 'send failed: ECONNRESET', 'last', 'close: ECONNRESET']);
      });
    }

    test('leaves what was sent before the end to be read, and the end', async (t) => {
      const opened = await connection(t);
      const { owner, socket, peer } = opened;
      peer.end('last', () => peer.destroy());
      await write(opened);
      resumeUpstream(socket);
      await owner.has('close: undefined');
      const told = owner.events.filter((event) => event !== 'drain');
      assert.deepEqual(told, ['connect', 'first', 'send failed: EPIPE', 'last', 'end', 'close: undefined']);
    });

    test('ends a connection that has been read to its end', async (t) => {
      const opened = await connection(t);
      const { owner, socket, peer } = opened;
      peer.end();
      resumeUpstream(socket);
      await owner.has('end');
      peer.destroy();
      while (!owner.events.includes('close: undefined')) {
        socket.write('more');
        await new Promise(setImmediate);
      }
      assert.ok(!owner.events.some((event) => event.startsWith('send failed')));
    });

    test('takes what waits and what comes as if it were sent', async (t) => {
      const opened = await connection(t);
      const { owner, socket, peer } = opened;
      assert.equal(socket.write(LARGE), false);
      socket.write('behind it');
      const drains = owner.events.filter((event) => event === 'drain').length;
      // Something to read, so that the reset is not what reading meets.
      peer.write('last');
      peer.destroy();
      await eventually(() => owner.events.filter((event) => event === 'drain').length > drains, 'the socket drains');
      assert.equal(socket.writableLength, 0);
      assert.equal(socket.write('more'), true);
      socket.cork();
      socket.write('more');
      socket.write('and more');
      socket.uncork();
      assert.equal(socket.writableLength, 0);
      assert.equal(owner.events.filter((event) => event.startsWith('send failed')).length, 1);
    });

    test('costs this connection only when it meets a bug', async (t) => {
      const opened = await connection(t);
      const { owner, peer } = opened;
      owner.onFailure = () => {
        throw new Error('deliberate');
      };
      peer.destroy();
      await write(opened);
      await owner.has('fault: deliberate');
      await owner.has('close: undefined');
    });
  });
}
