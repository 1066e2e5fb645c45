// A listening socket whose clients have to wait for descriptors. The budget is turned by hand: 0 makes every client
// the last one for now.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { Address } from '../../../../src/base/address.ts';
import { type DescriptorBudget, descriptorOf } from '../../../../src/base/descriptor-budget.ts';
import type { ListeningOptions } from '../../../../src/base/own-sockets.ts';
import { SystemCalls } from '../../../../src/base/system-calls.ts';
import { ListeningSocket, type ListeningSocketOwner } from '../../../../src/data-plane/listener/listening-socket.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { listenBacklogs, socketOption } from '../../../support/socket-option.ts';

const ANY_PORT: Address = { kind: 'ip', ip: '127.0.0.1', port: 0 };
const ENOUGH = Number.POSITIVE_INFINITY;
const RESUME_MS = 100;
const BACKLOG = 64;

class Fixture implements ListeningSocketOwner {
  readonly budget: { -readonly [Key in keyof DescriptorBudget]: number } = {
    acceptBelow: ENOUGH,
    connectBelow: ENOUGH,
    administerBelow: ENOUGH,
  };
  readonly clock = new ManualClock();
  readonly events: string[] = [];
  readonly accepted: Socket[] = [];
  readonly socket: ListeningSocket;
  target: { port: number; host: string } | { path: string } = { path: '' };
  onAccepted: (socket: Socket) => void = (socket) => void this.accepted.push(socket);

  constructor(address: Address = ANY_PORT, beginning: ListeningOptions | null = null, hasSystemCalls = true) {
    const { budget: descriptorBudget, clock } = this;
    const systemCalls = hasSystemCalls ? SystemCalls.open() : undefined;
    const options = { address, backlog: BACKLOG, reusePort: false, beginning, clock, descriptorBudget, systemCalls };
    this.socket = new ListeningSocket(options, this);
  }

  onRefused(): void {
    this.events.push('refused');
  }

  onPaused(): void {
    this.events.push('paused');
  }

  onResumed(): void {
    this.events.push('resumed');
  }

  onAcceptError(error: Error): void {
    this.events.push(error.message);
  }

  onFault(error: unknown): void {
    this.events.push(String(error));
  }

  /** A client, connected as far as the system is concerned. */
  async client(t: TestContext): Promise<Socket> {
    const client = connect(this.target);
    client.on('error', () => {});
    t.after(() => client.destroy());
    await once(client, 'connect');
    return client;
  }

  async untilAccepted(count: number): Promise<void> {
    await eventually(() => this.accepted.length === count, `${count} clients accepted`);
  }
}

async function listen(t: TestContext, address?: Address, beginning?: ListeningOptions): Promise<Fixture> {
  const fixture = new Fixture(address, beginning);
  const port = await fixture.socket.listen(0);
  fixture.target = address?.kind === 'pipe' ? { path: address.path } : { port, host: address?.ip ?? '127.0.0.1' };
  t.after(() => {
    fixture.socket.close();
    for (const socket of fixture.accepted) socket.destroy();
  });
  return fixture;
}

/** The number of the descriptor that is opened next. */
function nextDescriptor(): number {
  const next = openSync('/dev/null', 'r');
  closeSync(next);
  return next;
}

function pipeIn(t: TestContext): { kind: 'pipe'; path: string; mode: number } {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-listening-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return { kind: 'pipe', path: path.join(folder, 'socket'), mode: 0 };
}

test('a listening socket brings one client at each of its events, however many wait', async (t) => {
  const fixture = await listen(t);
  const perTurn: number[] = [];
  let ofTurn = 0;
  fixture.onAccepted = (socket) => {
    if (ofTurn === 0) {
      setImmediate(() => {
        perTurn.push(ofTurn);
        ofTurn = 0;
      });
    }
    ofTurn += 1;
    fixture.accepted.push(socket);
  };
  await Promise.all(Array.from({ length: 8 }, () => fixture.client(t)));
  await eventually(() => perTurn.length === 8, 'eight events');
  assert.deepEqual(perTurn, Array(8).fill(1));
});

describe('a listening socket whose descriptors run short', () => {
  for (const kind of ['port', 'pipe'] as const) {
    it(`lets clients wait until some are free: ${kind}`, async (t) => {
      const fixture = await listen(t, kind === 'pipe' ? pipeIn(t) : ANY_PORT);
      for (const round of [1, 2, 3]) {
        fixture.events.length = 0;
        fixture.budget.acceptBelow = 0;
        const last = await fixture.client(t);
        await fixture.untilAccepted(4 * round - 3);
        assert.deepEqual(fixture.events, ['paused']);
        const waiting = [await fixture.client(t), await fixture.client(t), await fixture.client(t)];
        fixture.clock.turn(RESUME_MS);
        assert.deepEqual(fixture.events, ['paused']);
        fixture.budget.acceptBelow = ENOUGH;
        fixture.clock.turn(RESUME_MS);
        assert.deepEqual(fixture.events, ['paused', 'resumed']);
        await fixture.untilAccepted(4 * round);
        for (const client of [last, ...waiting]) assert.equal(client.readyState, 'open');
      }
    });
  }

  it('refuses a client that would take the last descriptors', async (t) => {
    const fixture = await listen(t);
    fixture.budget.acceptBelow = 0;
    fixture.budget.connectBelow = 0;
    const client = await fixture.client(t);
    client.resume();
    await once(client, 'close');
    assert.deepEqual(fixture.events, ['paused', 'refused']);
    assert.equal(fixture.accepted.length, 0);
  });

  it('pauses in good time when descriptors have run short before', async (t) => {
    const fixture = await listen(t);
    fixture.budget.acceptBelow = 0;
    await fixture.client(t);
    await fixture.untilAccepted(1);
    fixture.budget.acceptBelow = ENOUGH;
    fixture.clock.turn(RESUME_MS);
    fixture.events.length = 0;
    // One for the client's own end, one for that of the listener; the next one is beyond the budget.
    fixture.budget.acceptBelow = nextDescriptor() + 2;
    await fixture.client(t);
    await fixture.untilAccepted(2);
    assert.ok(descriptorOf(fixture.accepted[1]!) < fixture.budget.acceptBelow);
    assert.deepEqual(fixture.events, ['paused']);
  });

  it('can be closed while it pauses: those that wait are cut off, and the place is free', async (t) => {
    const address = pipeIn(t);
    const fixture = await listen(t, address);
    fixture.budget.acceptBelow = 0;
    await fixture.client(t);
    await fixture.untilAccepted(1);
    const waiting = await fixture.client(t);
    const cutOff = new Promise((resolve) => waiting.resume().once('close', resolve));
    fixture.socket.close();
    await cutOff;
    assert.equal(existsSync(address.path), false);
    assert.equal(fixture.clock.timerCount, 0);
  });

  it('leaves who waits, and the path of a pipe, to whom it is shared with', async (t) => {
    const address = pipeIn(t);
    const first = await listen(t, address);
    const second = new Fixture(address);
    const shared = first.socket.share()!;
    first.socket.close(true);
    assert.equal(first.socket.share(), undefined);
    assert.ok(existsSync(address.path));
    // Nobody accepts at the moment.
    await first.client(t);
    await second.socket.listen(0, shared);
    await second.untilAccepted(1);
    second.accepted[0]!.destroy();
    const third = new Fixture(address);
    await third.socket.listen(0, second.socket.share()!);
    // One that has not taken over yet leaves it where it is.
    third.socket.close();
    assert.ok(existsSync(address.path));
    second.socket.own();
    second.socket.close();
    assert.equal(existsSync(address.path), false);
  });

  it('removes the path of a pipe at its end, after a pause as well', async (t) => {
    const address = pipeIn(t);
    const fixture = await listen(t, address);
    fixture.budget.acceptBelow = 0;
    await fixture.client(t);
    await fixture.untilAccepted(1);
    fixture.budget.acceptBelow = ENOUGH;
    fixture.clock.turn(RESUME_MS);
    await fixture.client(t);
    await fixture.untilAccepted(2);
    fixture.socket.close();
    assert.equal(existsSync(address.path), false);
  });

  it('ends with its thread, pausing as well: nobody waits at it for ever', async (t) => {
    const program = `
      import { parentPort } from 'node:worker_threads';
      import { ListeningSocket } from ${JSON.stringify(import.meta.resolve('../../../../src/data-plane/listener/listening-socket.ts'))};
      import { SystemCalls } from ${JSON.stringify(import.meta.resolve('../../../../src/base/system-calls.ts'))};
      import { SYSTEM_CLOCK } from ${JSON.stringify(import.meta.resolve('../../../../src/base/clock.ts'))};
      const descriptorBudget = { acceptBelow: 0, connectBelow: Infinity };
      const address = { kind: 'ip', ip: '127.0.0.1', port: 0 };
      const options = { address, backlog: 64, reusePort: false, beginning: null, clock: SYSTEM_CLOCK, descriptorBudget };
      const owner = { onAccepted() {}, onPaused: () => parentPort.postMessage('paused') };
      const socket = new ListeningSocket({ ...options, systemCalls: SystemCalls.open() }, owner);
      parentPort.postMessage(await socket.listen(0));
      parentPort.ref();
      parentPort.on('message', () => {});
    `;
    const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`));
    t.after(() => thread.terminate());
    const [port] = (await once(thread, 'message')) as [number];
    const paused = once(thread, 'message');
    const client = connect(port, '127.0.0.1');
    client.on('error', () => {});
    t.after(() => client.destroy());
    await paused;
    await thread.terminate();
    const late = connect(port, '127.0.0.1');
    const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException];
    assert.equal(error.code, 'ECONNREFUSED');
  });

  it('costs a client its connection when the owner fails', async (t) => {
    const fixture = await listen(t);
    fixture.onAccepted = () => {
      throw new Error('no memory');
    };
    const client = await fixture.client(t);
    client.resume();
    await once(client, 'close');
    assert.deepEqual(fixture.events, ['Error: no memory']);
  });
});

describe('a socket that begins with options', () => {
  const IP_TTL = { level: 0, name: 2, value: 7 };
  const SO_REUSEPORT = { level: 1, name: 15, value: 1 };
  const SO_RCVBUF = { level: 1, name: 8, value: 65_536 };
  const TCP_FASTOPEN = { level: 6, name: 23, value: 5 };
  const IPV6_ONLY = { level: 41, name: 26 };
  const NOTHING: ListeningOptions = { beforeBind: [], afterBind: [], afterListen: [] };

  /** Linux hands options on to what is accepted. */
  function optionOf(fixture: Fixture, option: { readonly level: number; readonly name: number }, accepted = 0): number {
    return socketOption(descriptorOf(fixture.accepted[accepted]!), option.level, option.name);
  }

  it('has them in their time, and accepts as any other, also after a pause', async (t) => {
    const beginning = { beforeBind: [IP_TTL], afterBind: [SO_RCVBUF], afterListen: [TCP_FASTOPEN] };
    const fixture = await listen(t, ANY_PORT, beginning);
    await fixture.client(t);
    await fixture.untilAccepted(1);
    // Linux doubles the size of buffers.
    assert.equal(optionOf(fixture, IP_TTL), IP_TTL.value);
    assert.equal(optionOf(fixture, SO_RCVBUF), 2 * SO_RCVBUF.value);
    fixture.budget.acceptBelow = 0;
    await fixture.client(t);
    await fixture.untilAccepted(2);
    assert.deepEqual(fixture.events, ['paused']);
    fixture.budget.acceptBelow = ENOUGH;
    fixture.clock.turn(RESUME_MS);
    await fixture.client(t);
    await fixture.untilAccepted(3);
    assert.equal(optionOf(fixture, IP_TTL, 2), IP_TTL.value);
  });

  for (const beginning of [null, { ...NOTHING, beforeBind: [IP_TTL] }]) {
    it(`lets as many wait as it is told, also after a pause, ${beginning === null ? 'without options' : 'with some'}`, async (t) => {
      const before = listenBacklogs().length;
      const fixture = await listen(t, ANY_PORT, beginning ?? undefined);
      // The socket, and the second descriptor of it.
      assert.deepEqual(listenBacklogs().slice(before), [BACKLOG, BACKLOG]);
      fixture.budget.acceptBelow = 0;
      await fixture.client(t);
      await fixture.untilAccepted(1);
      fixture.budget.acceptBelow = ENOUGH;
      fixture.clock.turn(RESUME_MS);
      assert.deepEqual(fixture.events, ['paused', 'resumed']);
      await eventually(() => listenBacklogs().length === before + 2, 'both descriptors');
      assert.deepEqual(new Set(listenBacklogs()), new Set([BACKLOG]));
    });
  }

  it('needs system calls, and says so without', async () => {
    const fixture = new Fixture(ANY_PORT, { ...NOTHING, beforeBind: [IP_TTL] }, false);
    await assert.rejects(fixture.socket.listen(0), {
      code: 'WEIR_LISTEN',
      message: /^cannot listen on 127\.0\.0\.1:0: it has socket options, which need Linux/,
    });
  });

  it('is bound as Node would bind it: for IPv6 alone, or for IPv4, too; alone on its port', async (t) => {
    const options = { ...NOTHING, beforeBind: [SO_RCVBUF] };
    const dual = await listen(t, { kind: 'ip', ip: '::', port: 0, acceptsIpv4: true }, options);
    dual.target = { port: (dual.target as { port: number }).port, host: '127.0.0.1' };
    await dual.client(t);
    await dual.untilAccepted(1);
    const six = await listen(t, { kind: 'ip', ip: '::1', port: 0 }, options);
    await six.client(t);
    await six.untilAccepted(1);
    assert.equal(optionOf(six, IPV6_ONLY), 1);
    const { port } = six.target as { port: number };
    const second = new Fixture({ kind: 'ip', ip: '::1', port }, options);
    await assert.rejects(second.socket.listen(port), {
      code: 'WEIR_LISTEN',
      message: `cannot listen on [::1]:${port}: bind EADDRINUSE`,
    });
    const shared = new Fixture({ kind: 'ip', ip: '::1', port: 0 }, { ...NOTHING, beforeBind: [SO_REUSEPORT] });
    t.after(() => shared.socket.close());
    const sharedPort = await shared.socket.listen(0);
    const other = new Fixture({ kind: 'ip', ip: '::1', port: 0 }, { ...NOTHING, beforeBind: [SO_REUSEPORT] });
    t.after(() => other.socket.close());
    assert.equal(await other.socket.listen(sharedPort), sharedPort);
  });

  it('is another one with other options', () => {
    const withOptions = new Fixture(ANY_PORT, { ...NOTHING, beforeBind: [IP_TTL] });
    const withOthers = new Fixture(ANY_PORT, { ...NOTHING, beforeBind: [SO_RCVBUF] });
    const plain = new Fixture();
    assert.equal(plain.socket.identity, new Fixture().socket.identity);
    assert.equal(new Set([withOptions, withOthers, plain].map(({ socket }) => socket.identity)).size, 3);
  });

  for (const state of ['beforeBind', 'afterBind', 'afterListen'] as const) {
    it(`is refused for one that cannot be set (${state}), and leaves nothing open`, async () => {
      const unknown = { level: 6, name: 9999, value: 1 };
      const before = readdirSync('/proc/self/fd').length;
      const fixture = new Fixture(ANY_PORT, { ...NOTHING, [state]: [unknown] });
      await assert.rejects(fixture.socket.listen(0), {
        code: 'WEIR_LISTEN',
        message: 'cannot listen on 127.0.0.1:0: setsockopt ENOPROTOOPT of option 6/9999',
      });
      await eventually(() => readdirSync('/proc/self/fd').length === before, 'the descriptors to be closed');
    });
  }
});

describe('a listening socket that is held', () => {
  it('has clients wait in the queue until it is let go, and tells nobody of want', async (t) => {
    const fixture = await listen(t);
    fixture.socket.hold(true);
    fixture.socket.hold(true);
    await fixture.client(t);
    fixture.clock.turn(10 * RESUME_MS);
    await fixture.client(t);
    assert.equal(fixture.accepted.length, 0);
    fixture.socket.hold(false);
    await fixture.untilAccepted(2);
    assert.deepEqual(fixture.events, []);
    assert.equal(fixture.clock.timerCount, 0);
  });

  it('holds them also when the order comes while it is being opened', async (t) => {
    const fixture = new Fixture();
    const opening = fixture.socket.listen(0);
    fixture.socket.hold(true);
    fixture.target = { port: await opening, host: '127.0.0.1' };
    t.after(() => fixture.socket.close());
    await fixture.client(t);
    fixture.clock.turn(10 * RESUME_MS);
    assert.equal(fixture.accepted.length, 0);
    fixture.socket.hold(false);
    await fixture.untilAccepted(1);
    fixture.accepted[0]!.destroy();
  });

  it('stays so when descriptors are free again, and is short of them when it is let go too early', async (t) => {
    const fixture = await listen(t);
    fixture.budget.acceptBelow = 0;
    await fixture.client(t);
    await fixture.untilAccepted(1);
    assert.deepEqual(fixture.events, ['paused']);
    fixture.socket.hold(true);
    fixture.budget.acceptBelow = ENOUGH;
    fixture.clock.turn(10 * RESUME_MS);
    assert.deepEqual(fixture.events, ['paused']);
    fixture.budget.acceptBelow = 0;
    fixture.socket.hold(false);
    assert.deepEqual(fixture.events, ['paused']);
    fixture.budget.acceptBelow = ENOUGH;
    fixture.clock.turn(RESUME_MS);
    assert.deepEqual(fixture.events, ['paused', 'resumed']);
    await fixture.client(t);
    await fixture.untilAccepted(2);
  });

  it('accepts all the same where the system cannot make clients wait', async (t) => {
    const fixture = new Fixture(ANY_PORT, null, false);
    fixture.target = { port: await fixture.socket.listen(0), host: '127.0.0.1' };
    t.after(() => {
      fixture.socket.close();
      for (const socket of fixture.accepted) socket.destroy();
    });
    fixture.socket.hold(true);
    await fixture.client(t);
    await fixture.untilAccepted(1);
    fixture.socket.hold(false);
  });
});
