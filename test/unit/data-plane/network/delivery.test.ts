// Whether a peer has all that it was sent, on real sockets and a clock turned by hand.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import type { SystemCalls } from '../../../../src/base/system-calls.ts';
import { Delivery } from '../../../../src/data-plane/network/delivery.ts';
import { TimerWheel } from '../../../../src/data-plane/network/timer-wheel.ts';
import { eventually, untilEqual } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { systemCalls, unreadPair } from '../../../support/unread-pair.ts';

const SECOND_MS = 1000;
const PIECE = Buffer.alloc(100_000);

function watch(socket: Socket, calls: SystemCalls | undefined = systemCalls) {
  const clock = new ManualClock();
  const wheel = new TimerWheel(clock, (error) => {
    throw error;
  });
  const told = { progress: 0, delivered: 0 };
  const owner = {
    onDeliveryProgress: () => void told.progress++,
    onDelivered: () => void told.delivered++,
  };
  return { clock, wheel, told, delivery: new Delivery({ systemCalls: calls, wheel, clock }, socket, owner) };
}

/** What was written is in the sending system's hands alone, as far as the peer's does not take it. */
async function sentToNobody(t: TestContext) {
  const pair = await unreadPair(t);
  pair.peer.pause();
  while (pair.accepted.writableLength === 0) pair.accepted.write(PIECE);
  return { ...pair, ...watch(pair.accepted) };
}

async function takeAll({ accepted, descriptor, peer }: { accepted: Socket; descriptor: number; peer: Socket }) {
  peer.resume();
  const isTaken = (): boolean => accepted.writableLength === 0 && systemCalls.sentState(descriptor)!.isAcknowledged;
  await untilEqual(true, isTaken, 'whether the peer has all');
}

describe('what a socket has sent', () => {
  it('is delivered if there is nothing of it', async (t) => {
    const { accepted } = await unreadPair(t);
    const { told, wheel, delivery } = watch(accepted);
    delivery.start();
    assert.deepEqual(told, { progress: 0, delivered: 1 });
    assert.equal(wheel.size, 0);
  });

  it('is not while its system has some of it, and is told once when that is over', async (t) => {
    const sent = await sentToNobody(t);
    const { clock, told, wheel, delivery } = sent;
    delivery.start();
    clock.turn(10 * SECOND_MS);
    assert.equal(told.delivered, 0);
    await takeAll(sent);
    clock.turn(SECOND_MS);
    assert.equal(told.delivered, 1);
    clock.turn(SECOND_MS);
    assert.equal(told.delivered, 1);
    assert.equal(wheel.size, 0);
  });

  it('is not while our system has taken all, and the peer has not', async (t) => {
    const sent = await sentToNobody(t);
    const { accepted, peer, clock, told, delivery } = sent;
    // Until there is room in our system for the last of it, and no further.
    while (accepted.writableLength > 0) {
      peer.read();
      await new Promise(setImmediate);
    }
    delivery.start();
    clock.turn(SECOND_MS);
    assert.equal(told.delivered, 0);
    await takeAll(sent);
    clock.turn(SECOND_MS);
    assert.equal(told.delivered, 1);
  });

  it('moves when the peer has acknowledged more than at the look before, and only then', async (t) => {
    const { accepted } = await unreadPair(t);
    const state = { isAcknowledged: false, acknowledgedBytes: 5 };
    const { clock, told, delivery } = watch(accepted, { sentState: () => state } as unknown as SystemCalls);
    delivery.start();
    assert.equal(told.progress, 0);
    clock.turn(10 * SECOND_MS);
    assert.equal(told.progress, 0);
    for (const more of [1, 2]) {
      state.acknowledgedBytes += more;
      clock.turn(10 * SECOND_MS);
      assert.equal(told.progress, more);
    }
    state.isAcknowledged = true;
    state.acknowledgedBytes += 1;
    clock.turn(SECOND_MS);
    assert.deepEqual(told, { progress: 2, delivered: 1 });
  });

  it('includes its end', async (t) => {
    const { accepted, descriptor } = await unreadPair(t);
    const { clock, told, delivery } = watch(accepted);
    accepted.end();
    delivery.start();
    // The end is said in a later turn.
    assert.equal(told.delivered, 0);
    await once(accepted, 'finish');
    await untilEqual(true, () => systemCalls.sentState(descriptor)!.isAcknowledged, 'whether the peer has the end');
    clock.turn(SECOND_MS);
    assert.equal(told.delivered, 1);
  });

  it('is of no interest any more after a stop', async (t) => {
    const sent = await sentToNobody(t);
    const { clock, told, wheel, delivery } = sent;
    delivery.start();
    delivery.stop();
    assert.equal(wheel.size, 0);
    await takeAll(sent);
    clock.turn(SECOND_MS);
    assert.deepEqual(told, { progress: 0, delivered: 0 });
  });

  it('is looked after soon at first, and less and less often', async (t) => {
    const { accepted } = await sentToNobody(t);
    const looks: number[] = [];
    const counting = {
      sentState: (descriptor: number) => {
        looks.push(clock.monotonicMs());
        return systemCalls.sentState(descriptor);
      },
    } as SystemCalls;
    const { clock, delivery } = watch(accepted, counting);
    delivery.start();
    clock.turn(10 * SECOND_MS);
    const [first, second] = looks;
    assert.ok(second! - first! <= 16);
    assert.ok(looks.length < 50);
    // A peer that takes the last byte late is not kept waiting for long.
    assert.ok(looks.at(-1)! - looks.at(-2)! < SECOND_MS / 2);
  });
});

describe('where the system does not say more, what it has taken counts as delivered', () => {
  it('without system calls', async (t) => {
    const { accepted, clock, told, peer } = await sentToNobody(t);
    const watched = watch(accepted, { sentState: () => undefined } as unknown as SystemCalls);
    watched.delivery.start();
    watched.clock.turn(SECOND_MS);
    assert.deepEqual(watched.told, { progress: 0, delivered: 0 });
    peer.resume();
    await eventually(() => accepted.writableLength === 0, 'all is taken');
    watched.clock.turn(SECOND_MS);
    assert.equal(watched.told.delivered, 1);
    clock.turn(SECOND_MS);
    assert.deepEqual(told, { progress: 0, delivered: 0 });
  });

  it('over a pipe, where that is so', async (t) => {
    const server = createServer().listen(`\0weir-test-${process.pid}-delivery`);
    await once(server, 'listening');
    const socket = connect(`\0weir-test-${process.pid}-delivery`);
    t.after(() => {
      socket.destroy();
      server.close();
    });
    await once(socket, 'connect');
    socket.write('taken');
    const { told, delivery } = watch(socket);
    delivery.start();
    assert.equal(told.delivered, 1);
  });
});
