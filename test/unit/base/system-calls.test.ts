import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { descriptorOf } from '../../../src/base/descriptor-budget.ts';
import { PeerState, trimAllocator } from '../../../src/base/system-calls.ts';
import { untilEqual } from '../../support/eventually.ts';
import { peerStateOf, systemCalls, unreadPair } from '../../support/unread-pair.ts';

const SENT_BYTES = 1_000_000;

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

  it('knows how much of what was sent the peer has acknowledged', async (t) => {
    const { accepted, descriptor, peer } = await unreadPair(t);
    const acknowledged = (): boolean => systemCalls.sentState(descriptor)!.isAcknowledged;
    assert.deepEqual(systemCalls.sentState(descriptor), { isAcknowledged: true, acknowledgedBytes: 0 });
    // Nobody reads, so that the last of it stays here.
    while (accepted.writableLength === 0) accepted.write(Buffer.alloc(SENT_BYTES));
    await untilEqual(true, () => systemCalls.sentState(descriptor)!.acknowledgedBytes > 0, 'whether the peer has some');
    assert.equal(acknowledged(), false);
    peer.resume();
    accepted.end();
    await untilEqual(true, () => accepted.writableFinished && acknowledged(), 'whether the peer has all');
    const { acknowledgedBytes } = systemCalls.sentState(descriptor)!;
    // The end counts as one.
    assert.equal(acknowledgedBytes, accepted.bytesWritten + 1);
  });

  it('does not know that of a pipe, or of nothing', async (t) => {
    const server = createServer().listen(`\0weir-test-${process.pid}-sent`);
    await once(server, 'listening');
    const socket = connect(`\0weir-test-${process.pid}-sent`);
    t.after(() => {
      socket.destroy();
      server.close();
    });
    await once(socket, 'connect');
    assert.equal(systemCalls.sentState(descriptorOf(socket)), undefined);
    assert.equal(systemCalls.sentState(-1), undefined);
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

  it('passes descriptors on over a unix socket', () => {
    const name = `\0weir-test-${process.pid}-descriptors`;
    const receiver = systemCalls.bindDatagramSocket(name);
    const sender = systemCalls.openDatagramSocket(name);
    const given = Array.from({ length: 253 }, () => openSync('/dev/null', 'r'));
    assert.equal(systemCalls.receiveDescriptors(receiver), undefined);
    assert.equal(systemCalls.sendDescriptors(sender, 'token', given), 0);
    for (const descriptor of given) closeSync(descriptor);
    const { text, descriptors } = systemCalls.receiveDescriptors(receiver)!;
    assert.equal(text, 'token');
    assert.equal(new Set(descriptors).size, given.length);
    for (const descriptor of descriptors) {
      assert.ok(fstatSync(descriptor).isCharacterDevice());
      closeSync(descriptor);
    }
    assert.equal(systemCalls.sendDescriptors(sender, 'token', [given[0]!]), -9);
    systemCalls.close(receiver);
    systemCalls.close(sender);
  });

  it('binds a name of unix sockets once', () => {
    const name = `\0weir-test-${process.pid}-once`;
    const first = systemCalls.bindStreamSocket(name);
    assert.equal(systemCalls.bindStreamSocket(name), -98);
    systemCalls.close(first);
  });

  it('knows whose process is at the other end of a unix socket', async (t) => {
    const server = createServer().listen(`\0weir-test-${process.pid}-peer`);
    await once(server, 'listening');
    const client = connect(`\0weir-test-${process.pid}-peer`);
    const [accepted] = (await once(server, 'connection')) as [Socket];
    t.after(() => server.close());
    for (const socket of [client, accepted]) {
      assert.equal(systemCalls.peerUser(descriptorOf(socket)), process.getuid!());
      socket.destroy();
    }
    assert.equal(systemCalls.peerUser(-1), undefined);
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
