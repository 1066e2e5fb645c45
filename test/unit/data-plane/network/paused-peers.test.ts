// Who has left while nothing is read from it, on real sockets and a clock turned by hand.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { PeerState } from '../../../../src/base/system-calls.ts';
import { PausedPeer, PausedPeers, type PausedPeersOptions } from '../../../../src/data-plane/network/paused-peers.ts';
import { TimerWheel } from '../../../../src/data-plane/network/timer-wheel.ts';
import { untilEqual } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { peerStateOf, systemCalls, type UnreadPair, unreadPair } from '../../../support/unread-pair.ts';

const SECOND_MS = 1000;

function watch(options: Partial<PausedPeersOptions> = {}) {
  const clock = new ManualClock();
  const faults: unknown[] = [];
  const onFault = (error: unknown): void => void faults.push(error);
  const wheel = new TimerWheel(clock, onFault);
  const peers = new PausedPeers({ systemCalls, wheel, clock, onFault, ...options });
  return { clock, faults, peers };
}

interface Watched extends UnreadPair {
  readonly peerOf: PausedPeer;
  /** What the owner was told. */
  readonly told: boolean[];
}

async function watched(t: TestContext): Promise<Watched> {
  const pair = await unreadPair(t);
  const told: boolean[] = [];
  return {
    ...pair,
    told,
    peerOf: new PausedPeer({ onPausedPeerGone: (isReset) => told.push(isReset) }, pair.accepted),
  };
}

async function leave({ peer, descriptor }: UnreadPair, how: 'end' | 'reset'): Promise<void> {
  if (how === 'end') peer.end('unread');
  else peer.resetAndDestroy();
  const expected = how === 'end' ? PeerState.ended : PeerState.reset;
  await untilEqual(expected, () => peerStateOf(descriptor), 'what the system knows');
}

describe('a paused connection', () => {
  for (const how of ['end', 'reset'] as const) {
    it(`whose peer has left by ${how} is told of within a second`, async (t) => {
      const { clock, peers } = watch();
      const one = await watched(t);
      peers.pause(one.peerOf);
      await leave(one, how);
      clock.turn(SECOND_MS);
      assert.deepEqual(one.told, [how === 'reset']);
    });
  }

  it('whose peer is there is left alone', async (t) => {
    const { clock, peers } = watch();
    const one = await watched(t);
    one.peer.write('unread');
    peers.pause(one.peerOf);
    clock.turn(10 * SECOND_MS);
    assert.deepEqual(one.told, []);
    assert.equal(peers.size, 1);
  });

  it('is told of an end once, and then of a reset', async (t) => {
    const { clock, peers } = watch();
    const one = await watched(t);
    peers.pause(one.peerOf);
    await leave(one, 'end');
    clock.turn(5 * SECOND_MS);
    assert.deepEqual(one.told, [false]);
    await leave(one, 'reset');
    clock.turn(SECOND_MS);
    assert.equal(one.told[1], true);
  });

  it('whose owner knows of the end is told of a reset alone', async (t) => {
    const { clock, peers } = watch();
    const one = await watched(t);
    await leave(one, 'end');
    peers.ended(one.peerOf);
    clock.turn(5 * SECOND_MS);
    assert.deepEqual(one.told, []);
    await leave(one, 'reset');
    clock.turn(SECOND_MS);
    assert.equal(one.told[0], true);
  });

  it('is not looked at while its pauses are short', async (t) => {
    const looked: number[] = [];
    const counting = {
      peerStates: (descriptors: readonly number[], states: Uint8Array) => {
        looked.push(descriptors.length);
        return systemCalls.peerStates(descriptors, states);
      },
    } as typeof systemCalls;
    const { clock, peers } = watch({ systemCalls: counting });
    const one = await watched(t);
    for (let pause = 0; pause < 20; pause++) {
      peers.pause(one.peerOf);
      clock.turn(300);
      one.peerOf.resume();
      clock.turn(50);
    }
    assert.deepEqual(looked, []);
    peers.pause(one.peerOf);
    clock.turn(SECOND_MS);
    assert.ok(looked.length > 0);
  });

  it('that goes on is forgotten, and the timer with the last of them', async (t) => {
    const { clock, peers } = watch();
    const one = await watched(t);
    peers.pause(one.peerOf);
    one.peerOf.resume();
    await leave(one, 'reset');
    clock.turn(SECOND_MS);
    assert.deepEqual(one.told, []);
    assert.equal(peers.size, 0);
    clock.turn(SECOND_MS);
    assert.equal(clock.timerCount, 0);
    peers.pause(one.peerOf);
    clock.turn(SECOND_MS);
    assert.deepEqual(one.told, [true]);
  });

  it('that another owner has ended meanwhile is not told', async (t) => {
    const { clock, peers } = watch();
    const second = await watched(t);
    const pair = await unreadPair(t);
    const first = new PausedPeer({ onPausedPeerGone: () => second.peerOf.resume() }, pair.accepted);
    peers.pause(first);
    peers.pause(second.peerOf);
    await leave(pair, 'reset');
    await leave(second, 'reset');
    clock.turn(SECOND_MS);
    assert.deepEqual(second.told, []);
  });

  it('whose socket is closed already harms nobody', async (t) => {
    const { clock, peers } = watch();
    const closed = await watched(t);
    const one = await watched(t);
    peers.pause(closed.peerOf);
    peers.pause(one.peerOf);
    closed.accepted.destroy();
    await leave(one, 'reset');
    clock.turn(SECOND_MS);
    assert.deepEqual(closed.told, []);
    assert.deepEqual(one.told, [true]);
  });
});

it('an owner that throws costs the others nothing', async (t) => {
  const { clock, faults, peers } = watch();
  const bug = new Error('a bug');
  const pair = await unreadPair(t);
  const onPausedPeerGone = (): never => {
    throw bug;
  };
  peers.pause(new PausedPeer({ onPausedPeerGone }, pair.accepted));
  const one = await watched(t);
  peers.pause(one.peerOf);
  await leave(pair, 'reset');
  await leave(one, 'reset');
  clock.turn(SECOND_MS);
  assert.deepEqual(faults, [bug]);
  assert.deepEqual(one.told, [true]);
});

it('others that pause meanwhile do not put off the look at one', async (t) => {
  const { clock, peers } = watch();
  const one = await watched(t);
  const others = await Promise.all(Array.from({ length: 4 }, () => watched(t)));
  peers.pause(one.peerOf);
  await leave(one, 'reset');
  for (const other of others) {
    clock.turn(SECOND_MS / 5);
    peers.pause(other.peerOf);
  }
  clock.turn(SECOND_MS / 5);
  assert.deepEqual(one.told, [true]);
});

it('without system calls nobody is watched', async (t) => {
  const { clock, peers } = watch({ systemCalls: undefined });
  const one = await watched(t);
  peers.pause(one.peerOf);
  assert.equal(peers.size, 0);
  await leave(one, 'reset');
  clock.turn(SECOND_MS);
  assert.deepEqual(one.told, []);
  assert.equal(clock.timerCount, 0);
});

it('a system that refuses to say ends nothing', async (t) => {
  const refusing = { peerStates: () => false } as unknown as typeof systemCalls;
  const { clock, peers } = watch({ systemCalls: refusing });
  const one = await watched(t);
  peers.pause(one.peerOf);
  await leave(one, 'reset');
  clock.turn(2 * SECOND_MS);
  assert.deepEqual(one.told, []);
  assert.equal(peers.size, 1);
});
