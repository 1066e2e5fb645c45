// How sockets to upstreams are opened: where from, with which options, and what is told of them. Real sockets, in both ways
// of reading them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Address } from '../../../../src/base/address.ts';
import { descriptorBudget, descriptorOf } from '../../../../src/base/descriptor-budget.ts';
import { SystemCalls } from '../../../../src/base/system-calls.ts';
import {
  connectUpstream,
  resetSocket,
  resumeUpstream,
  type UpstreamSocketOptions,
  type UpstreamSocketOwner,
} from '../../../../src/data-plane/network/socket-events.ts';
import { eventually } from '../../../support/eventually.ts';
import { socketOption } from '../../../support/socket-option.ts';
import { peerEnd, sendsAtOnce, unusedPort } from '../../../support/wire.ts';

const PLAIN: UpstreamSocketOptions = { sourceAddress: undefined, tcpKeepalive: undefined };
const IP_TTL = { level: 0, name: 2, value: 7 };
const TCP_NODELAY = [6, 1] as const;
const KEEPALIVE = { probes: 3, timeSeconds: 60, intervalSeconds: 5 };

class Owner implements UpstreamSocketOwner {
  readonly events: string[] = [];
  text = '';
  goesOn = true;
  /** What was read lies in the owner's own memory. */
  readsIntoBuffer = false;
  connected = (): void => {};
  readonly #buffer = Buffer.alloc(64);

  has(event: string): Promise<void> {
    return eventually(() => this.events.includes(event), `${event} among ${this.events.join()}`);
  }

  readBuffer(): Buffer {
    return this.#buffer;
  }

  onConnect(): void {
    this.events.push('connect');
    this.connected();
  }

  onBytes(chunk: Buffer, length: number): boolean {
    this.readsIntoBuffer = chunk === this.#buffer;
    this.text += chunk.toString('latin1', 0, length);
    return this.goesOn;
  }

  onEnd(): void {
    this.events.push('end');
  }

  onDrain(): void {
    this.events.push('drain');
  }

  onSendFailed(): void {
    this.events.push('send failed');
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    this.events.push(`close ${error?.code ?? ''}`.trim());
  }

  onFault(error: unknown): void {
    this.events.push(`fault: ${(error as Error).message}`);
  }
}

/** The address of an upstream, and its end of the connection. */
async function upstream(t: TestContext, isPipe = false): Promise<{ address: Address; accepted: Promise<Socket> }> {
  const server = createServer({ allowHalfOpen: true });
  let address: Address;
  if (isPipe) {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-test-'));
    t.after(() => rmSync(folder, { recursive: true }));
    address = { kind: 'pipe', path: path.join(folder, 'socket'), mode: 0 };
    server.listen(address.path);
    await once(server, 'listening');
  } else {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    address = { kind: 'ip', ip: '127.0.0.1', port: (server.address() as { port: number }).port };
  }
  t.after(() => void server.close());
  const accepted = once(server, 'connection').then(([socket]) => {
    t.after(() => void (socket as Socket).destroy());
    return socket as Socket;
  });
  return { address, accepted };
}

for (const readMode of ['lean', 'events'] as const) {
  function open(
    t: TestContext,
    address: Address,
    options: Partial<UpstreamSocketOptions> = {},
    budget = descriptorBudget(undefined),
  ): { owner: Owner; socket: Socket } {
    const owner = new Owner();
    const context = { readMode, descriptorBudget: budget, systemCalls: SystemCalls.open() };
    const socket = connectUpstream(address, owner, context, { ...PLAIN, ...options });
    t.after(() => void socket.destroy());
    return { owner, socket };
  }

  describe(`a socket to an upstream, reading by ${readMode}`, () => {
    for (const [kind, isPipe] of [
      ['an address', false],
      ['a pipe', true],
    ] as const) {
      test(`connects to ${kind}, and carries bytes and ends both ways`, async (t) => {
        const { address, accepted } = await upstream(t, isPipe);
        const { owner, socket } = open(t, address, {
          sourceAddress: { kind: 'ip', ip: '127.0.0.1', port: 0 },
          tcpKeepalive: KEEPALIVE,
        });
        const peer = await accepted;
        await owner.has('connect');
        assert.ok(socket.write('question'));
        const [question] = (await once(peer, 'data')) as [Buffer];
        assert.equal(question.toString(), 'question');
        peer.end('answer, longer than what is read at once, so that it comes in some pieces');
        await owner.has('end');
        assert.ok(owner.text.startsWith('answer') && owner.text.endsWith('pieces'));
        assert.equal(owner.readsIntoBuffer, readMode === 'lean');
        assert.ok(socket.writable);
        socket.end();
        await owner.has('close');
        assert.deepEqual(owner.events, ['connect', 'end', 'close']);
      });
    }

    test('comes from the address that it is given', async (t) => {
      const { address, accepted } = await upstream(t);
      open(t, address, { sourceAddress: { kind: 'ip', ip: '127.0.0.9', port: 0 } });
      assert.equal((await accepted).remoteAddress, '127.0.0.9');
    });

    test('has the options that it begins with, and reads, writes and ends as any other', async (t) => {
      const { address, accepted } = await upstream(t);
      const source = {
        address: { kind: 'ip', ip: '127.0.0.9', port: 0 },
        beforeBind: [IP_TTL],
        afterBind: [],
      } as const;
      const { owner, socket } = open(t, address, {
        sourcesByFamily: { v4: source, v6: source },
        tcpKeepalive: KEEPALIVE,
      });
      const peer = await accepted;
      await owner.has('connect');
      assert.equal(peer.remoteAddress, '127.0.0.9');
      assert.equal(socketOption(descriptorOf(socket), IP_TTL.level, IP_TTL.name), IP_TTL.value);
      assert.ok(sendsAtOnce(socket));
      assert.equal(socketOption(descriptorOf(socket), ...TCP_NODELAY), 1);
      assert.ok(socket.write('question'));
      const [question] = (await once(peer, 'data')) as [Buffer];
      assert.equal(question.toString(), 'question');
      peer.end('answer');
      await owner.has('end');
      assert.equal(owner.text, 'answer');
      socket.end();
      await owner.has('close');
      assert.deepEqual(owner.events, ['connect', 'end', 'close']);
    });

    for (const [what, source, code] of [
      ['an option', { beforeBind: [{ ...IP_TTL, value: 1000 }] }, 'EINVAL'],
      ['its source', { address: { kind: 'ip', ip: '192.0.2.1', port: 0 }, beforeBind: [IP_TTL] }, 'EADDRNOTAVAIL'],
    ] as const) {
      test(`fails by closing when ${what} cannot be had`, async (t) => {
        const { address } = await upstream(t);
        const whole = { address: undefined, afterBind: [], ...source };
        const { owner } = open(t, address, { sourcesByFamily: { v4: whole, v6: whole } });
        assert.deepEqual(owner.events, []);
        await owner.has(`close ${code}`);
        assert.deepEqual(owner.events, [`close ${code}`]);
      });
    }

    test('sends what is short at once', async (t) => {
      const { address, accepted } = await upstream(t);
      const { owner, socket } = open(t, address);
      await Promise.all([accepted, owner.has('connect')]);
      assert.ok(sendsAtOnce(socket));
    });

    test('is probed as its cluster says, before its owner may write', async (t) => {
      const { address } = await upstream(t);
      const probed = t.mock.method(Socket.prototype, 'setKeepAlive');
      const { owner } = open(t, address, { tcpKeepalive: KEEPALIVE });
      let callsBefore = 0;
      owner.connected = () => {
        callsBefore = probed.mock.callCount();
      };
      await owner.has('connect');
      assert.equal(callsBefore, 1);
      assert.deepEqual(probed.mock.calls[0]!.arguments, [true, 60_000, 5000, 3]);
    });

    test('is not probed without settings, nor over a pipe', async (t) => {
      const probed = t.mock.method(Socket.prototype, 'setKeepAlive');
      const plain = open(t, (await upstream(t)).address);
      const pipe = open(t, (await upstream(t, true)).address, { tcpKeepalive: KEEPALIVE });
      await Promise.all([plain.owner.has('connect'), pipe.owner.has('connect')]);
      assert.equal(probed.mock.callCount(), 0);
    });

    test('fails to connect by closing', async (t) => {
      const { owner } = open(t, { kind: 'ip', ip: '127.0.0.1', port: await unusedPort() });
      await owner.has('close ECONNREFUSED');
      assert.deepEqual(owner.events, ['close ECONNREFUSED']);
    });

    for (const [place, isOver] of [
      ['the first', true],
      ['the last', false],
    ] as const) {
      test(`is refused from a certain descriptor on: ${place}`, async (t) => {
        const { address } = await upstream(t);
        // As close to the descriptor as can be, whichever number that is.
        const connectBelow = { valueOf: (): number => descriptorOf(socket) + (isOver ? 0 : 1) } as unknown as number;
        const { owner, socket } = open(t, address, {}, { acceptBelow: 0, connectBelow, administerBelow: 0 });
        const expected = isOver ? 'close EMFILE' : 'connect';
        await owner.has(expected);
        assert.deepEqual(owner.events, [expected]);
      });
    }

    test('is broken off when its owner fails as it connects', async (t) => {
      const { address, accepted } = await upstream(t);
      const { owner } = open(t, address);
      owner.connected = () => {
        throw new Error('deliberate');
      };
      const ended = peerEnd(await accepted);
      await owner.has('close');
      assert.deepEqual(owner.events, ['connect', 'fault: deliberate', 'close']);
      assert.equal(await ended, 'ECONNRESET');
    });

    test('brings nothing while its owner wants none, and goes on after that', async (t) => {
      const { address, accepted } = await upstream(t);
      const { owner, socket } = open(t, address);
      owner.goesOn = false;
      const peer = await accepted;
      peer.write('x'.repeat(200));
      await eventually(() => owner.text !== '', 'the first bytes');
      const { length } = owner.text;
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      assert.equal(owner.text.length, length);
      owner.goesOn = true;
      resumeUpstream(socket);
      peer.end('y');
      await owner.has('end');
      assert.equal(owner.text, `${'x'.repeat(200)}y`);
    });
  });
}

test('a pipe has no reset, and is closed', async (t) => {
  const { address, accepted } = await upstream(t, true);
  const owner = new Owner();
  const context = { readMode: 'lean', descriptorBudget: descriptorBudget(undefined) } as const;
  const socket = connectUpstream(address, owner, context, PLAIN);
  await owner.has('connect');
  const ended = peerEnd(await accepted);
  resetSocket(socket);
  await owner.has('close');
  assert.equal(await ended, 'end');
});
