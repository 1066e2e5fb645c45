import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { PeerState, SystemCalls } from '../../../src/base/system-calls.ts';
import { untilEqual } from '../../support/eventually.ts';

const calls = SystemCalls.open()!;

interface Pair {
  /** Accepted, and not read. */
  readonly accepted: Socket;
  readonly descriptor: number;
  readonly peer: Socket;
}

async function unreadPair(t: TestContext): Promise<Pair> {
  const server: Server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const peer = connect((server.address() as { port: number }).port, '127.0.0.1');
  const [accepted] = (await accepting) as [Socket];
  accepted.on('error', () => {});
  t.after(() => {
    accepted.destroy();
    peer.destroy();
    server.close();
  });
  const { fd: descriptor } = (accepted as unknown as { _handle: { fd: number } })._handle;
  return { accepted, descriptor, peer };
}

function stateOf(descriptor: number): PeerState {
  const states = new Uint8Array(1);
  assert.ok(calls.peerStates([descriptor], states));
  return states[0] as PeerState;
}

describe('system calls', () => {
  it('sees that a peer is still there, whatever it has sent', async (t) => {
    const { descriptor, peer } = await unreadPair(t);
    peer.write('unread');
    assert.equal(stateOf(descriptor), PeerState.alive);
  });

  it('sees the end of a peer behind bytes that nobody has read', async (t) => {
    const { descriptor, peer } = await unreadPair(t);
    peer.end('unread');
    await untilEqual(PeerState.ended, () => stateOf(descriptor), 'the state');
  });

  it('tells a reset from an end', async (t) => {
    const { descriptor, peer } = await unreadPair(t);
    peer.resetAndDestroy();
    await untilEqual(PeerState.reset, () => stateOf(descriptor), 'the state');
  });

  it('asks of many sockets at once', async (t) => {
    const there = await unreadPair(t);
    const gone = await unreadPair(t);
    gone.peer.resetAndDestroy();
    const descriptors = Array.from({ length: 1000 }, (_, index) => (index === 700 ? gone : there).descriptor);
    const states = new Uint8Array(descriptors.length);
    const find = (): number => {
      assert.ok(calls.peerStates(descriptors, states));
      return states.indexOf(PeerState.reset);
    };
    await untilEqual(700, find, 'the one that is reset');
    assert.equal(states.lastIndexOf(PeerState.reset), 700);
  });

  it('knows how many descriptors the process may open', () => {
    assert.ok(calls.descriptorLimit()! > 10);
  });

  it('doubles a descriptor, and says why it cannot', () => {
    const original = openSync('/dev/null', 'r');
    const copy = calls.duplicate(original);
    closeSync(original);
    assert.ok(fstatSync(copy).isCharacterDevice());
    closeSync(copy);
    assert.equal(calls.duplicate(original), -9);
  });
});
