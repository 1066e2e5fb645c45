// Which way of reading accepted sockets is chosen at the start: under this Node release, and under ones that would do
// otherwise.

import assert from 'node:assert/strict';
import { Server, Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { SYSTEM_CLOCK } from '../../../../src/base/clock.ts';
import { chooseReadMode } from '../../../../src/data-plane/network/read-mode.ts';

type Push = (this: Socket, chunk: unknown) => boolean;

/** Does to each accepted socket what a Node release might do, before anybody else has it. */
function inAcceptedSockets(t: TestContext, act: (socket: Socket) => void): Socket[] {
  const accepted: Socket[] = [];
  const emit = Server.prototype.emit;
  t.mock.method(Server.prototype, 'emit', function (this: Server, event: string, ...args: unknown[]) {
    if (event === 'connection') {
      accepted.push(args[0] as Socket);
      act(args[0] as Socket);
    }
    return emit.call(this, event, ...args);
  });
  return accepted;
}

/** What comes goes through `handOver` instead of the `push` that an owner puts in its place. */
function pushBy(socket: Socket, handOver: (push: (chunk: unknown) => boolean, chunk: Buffer | null) => boolean): void {
  let own: Push = Socket.prototype.push;
  Object.defineProperty(socket, 'push', {
    get: () => (chunk: Buffer | null) => handOver((each) => own.call(socket, each), chunk),
    set: (push: Push) => {
      own = push;
    },
  });
}

/** The time limit of the self-test, which passes when a test says so. */
function limit(t: TestContext) {
  let isCancelled = false;
  const { promise: begun, resolve } = Promise.withResolvers<() => void>();
  t.mock.method(SYSTEM_CLOCK, 'after', (delayMs: number, callback: () => void) => {
    assert.equal(delayMs, 30_000);
    resolve(callback);
    return () => {
      isCancelled = true;
    };
  });
  return {
    async pass(): Promise<void> {
      const over = await begun;
      // Longer than the self-test takes.
      for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
      over();
    },
    get isCancelled(): boolean {
      return isCancelled;
    },
  };
}

const OTHERS: Buffer[] = [];

test('this Node release can read accepted sockets the lean way', async (t) => {
  const connect = t.mock.method(Socket.prototype, 'connect');
  const accepted = inAcceptedSockets(t, () => {});
  const time = limit(t);
  assert.equal(await chooseReadMode(), 'lean');
  assert.ok(time.isCancelled);
  const sockets = [...accepted, ...connect.mock.calls.map((call) => call.this as Socket)];
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [true, true, true, true],
  );
});

test('nobody but this machine can take part in the look', async (t) => {
  const listen = t.mock.method(Server.prototype, 'listen');
  await chooseReadMode();
  assert.deepEqual(listen.mock.calls[0]!.arguments.slice(0, 2), [0, '127.0.0.1']);
});

describe('accepted sockets are read by events under a Node release that', () => {
  for (const [what, act] of Object.entries<(socket: Socket) => void>({
    // All that is awaited, but before it is asked for.
    'goes on after a stop': (socket) => {
      let hasStopped = false;
      pushBy(socket, (push, chunk) => {
        if (hasStopped && chunk !== null) return true;
        const goesOn = push(chunk);
        if (!goesOn) setImmediate(push, Buffer.from('second'));
        hasStopped ||= !goesOn;
        return goesOn;
      });
    },
    'hands over what is no buffer': (socket) => pushBy(socket, (push) => push(Object.create(null))),
    'hands over other bytes': (socket) =>
      pushBy(socket, (push, chunk) => push(chunk?.toString() === 'second' ? Buffer.from('other') : chunk)),
    'tells of the end too early': (socket) =>
      pushBy(socket, (push, chunk) => {
        const goesOn = push(chunk);
        if (!goesOn) socket.emit('end');
        return goesOn;
      }),
    'closes the socket': (socket) => void socket.destroy(),
    'says of a short text that it waits': (socket) =>
      void Object.assign(socket, { write: (text: string, encoding: string) => text === '' || encoding !== 'latin1' }),
    'keeps what was written': (socket) => void Object.defineProperty(socket, 'writableLength', { value: 1 }),
  })) {
    test(what, async (t) => {
      inAcceptedSockets(t, act);
      const time = limit(t);
      assert.equal(await chooseReadMode(), 'events');
      assert.ok(time.isCancelled);
    });
  }

  for (const [what, act] of Object.entries<(socket: Socket) => void>({
    'hands bytes over in another way': (socket) => pushBy(socket, () => true),
    'loses the end': (socket) => pushBy(socket, (push, chunk) => chunk === null || push(chunk)),
    'hands over other memory than it was given': (socket) => {
      const handle = (socket as unknown as { _handle: { useUserBuffer(buffer: Buffer): void } })._handle;
      const useUserBuffer = handle.useUserBuffer.bind(handle);
      handle.useUserBuffer = (buffer) => {
        const other = Buffer.alloc(buffer.length);
        // Node itself keeps no hold of it: it would read into memory that has been freed.
        OTHERS.push(other);
        useUserBuffer(other);
      };
    },
    'gives the wrong length of what was read into shared memory': (socket) => {
      const key = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'kBufferCb')!;
      let own: (this: Socket, length: number, buffer: Buffer) => boolean;
      Object.defineProperty(socket, key, {
        get: () => (length: number, buffer: Buffer) => own.call(socket, length - 1, buffer),
        set: (callback: typeof own) => {
          own = callback;
        },
      });
    },
  })) {
    test(`${what}, after a while`, async (t) => {
      inAcceptedSockets(t, act);
      const time = limit(t);
      const [chosen] = await Promise.all([chooseReadMode(), time.pass()]);
      assert.equal(chosen, 'events');
    });
  }

  test('has no port to listen on', async (t) => {
    t.mock.method(Server.prototype, 'listen', function (this: Server) {
      setImmediate(() => this.emit('error', new Error('no port')));
      return this;
    });
    const time = limit(t);
    assert.equal(await chooseReadMode(), 'events');
    assert.ok(time.isCancelled);
  });

  test('refuses to listen at all', async (t) => {
    t.mock.method(Server.prototype, 'listen', () => {
      throw new Error('deliberate');
    });
    limit(t);
    assert.equal(await chooseReadMode(), 'events');
  });

  test('has no timer to give', async (t) => {
    t.mock.method(SYSTEM_CLOCK, 'after', () => {
      throw new Error('deliberate');
    });
    assert.equal(await chooseReadMode(), 'events');
  });

  test('refuses the connection', async (t) => {
    t.mock.method(Socket.prototype, 'connect', function (this: Socket) {
      setImmediate(() => this.emit('error', new Error('refused')));
      return this;
    });
    const time = limit(t);
    assert.equal(await chooseReadMode(), 'events');
    assert.ok(time.isCancelled);
  });
});
