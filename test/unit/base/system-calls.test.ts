import assert from 'node:assert/strict';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { describe, it } from 'node:test';
import { PeerState, trimAllocator } from '../../../src/base/system-calls.ts';
import { untilEqual } from '../../support/eventually.ts';
import { peerStateOf, systemCalls, unreadPair } from '../../support/unread-pair.ts';

describe('system calls', () => {
  it('sees that a peer is still there, whatever it has sent', async (t) => {
    const { descriptor, peer } = await unreadPair(t);
    peer.write('unread');
    assert.equal(peerStateOf(descriptor), PeerState.alive);
  });

  it('sees the end of a peer behind bytes that nobody has read', async (t) => {
    const { descriptor, peer } = await unreadPair(t);
    peer.end('unread');
    await untilEqual(PeerState.ended, () => peerStateOf(descriptor), 'the state');
  });

  it('tells a reset from an end', async (t) => {
    const { descriptor, peer } = await unreadPair(t);
    peer.resetAndDestroy();
    await untilEqual(PeerState.reset, () => peerStateOf(descriptor), 'the state');
  });

  it('asks of many sockets at once', async (t) => {
    const there = await unreadPair(t);
    const gone = await unreadPair(t);
    gone.peer.resetAndDestroy();
    const descriptors = Array.from({ length: 1000 }, (_, index) => (index === 700 ? gone : there).descriptor);
    const states = new Uint8Array(descriptors.length);
    const find = (): number => {
      assert.ok(systemCalls.peerStates(descriptors, states));
      return states.indexOf(PeerState.reset);
    };
    await untilEqual(700, find, 'the one that is reset');
    assert.equal(states.lastIndexOf(PeerState.reset), 700);
  });

  it('knows how many descriptors the process may open', () => {
    assert.ok(systemCalls.descriptorLimit()! > 10);
  });

  it('has the C library give back what it keeps, where that can', () => {
    const isGnu = (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header
      .glibcVersionRuntime;
    assert.equal(trimAllocator(), isGnu !== undefined);
  });

  it('doubles a descriptor, and says why it cannot', () => {
    const original = openSync('/dev/null', 'r');
    const copy = systemCalls.duplicate(original);
    closeSync(original);
    assert.ok(fstatSync(copy).isCharacterDevice());
    closeSync(copy);
    assert.equal(systemCalls.duplicate(original), -9);
  });
});
