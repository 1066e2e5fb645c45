// Datagrams that go together, to a real receiver on loopback.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { SystemCalls } from '../../../../src/base/system-calls.ts';
import { UdpSocket } from '../../../../src/extensions/stat_sinks/lines/udp-datagrams.ts';
import { eventually } from '../../../support/eventually.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { DatagramReceiver } from '../../../support/metric-receivers.ts';
import { sinkSurroundings } from '../../../support/stat-sinks.ts';

const EAGAIN = 11;

/** @param refuse what a call gives in the place of the system, by its number from 1. */
async function openSocket(receiver: DatagramReceiver, refuse: (call: number) => number | undefined = () => undefined) {
  const calls = SystemCalls.open()!;
  const made: number[] = [];
  const sendMany = calls.sendMany.bind(calls);
  calls.sendMany = (descriptor, batch, from) => {
    made.push(batch.count - from);
    return refuse(made.length) ?? sendMany(descriptor, batch, from);
  };
  const { context, count } = sinkSurroundings();
  const connected = Promise.withResolvers<void>();
  const target = { ip: '127.0.0.1', port: receiver.port };
  const options = { counts: context.counts, faults: NO_FAULTS, onLost: connected.reject, onSent: connected.resolve };
  const socket = UdpSocket.open(target, calls, options)!;
  await connected.promise;
  return { socket, count, made };
}

describe('datagrams that go together', () => {
  it('need a call for 64 of them, and are counted when the system has them', async () => {
    await using receiver = await DatagramReceiver.open();
    const { socket, count, made } = await openSocket(receiver);
    const texts = Array.from({ length: 150 }, (_, at) => `stat_${at}:1|c`);
    for (const text of texts) assert.ok(socket.send(text, 1));
    assert.equal(count('metrics_sent'), 128);
    socket.flush();
    assert.deepEqual(made, [64, 64, 22]);
    assert.equal(count('metrics_sent'), 150);
    await eventually(() => receiver.datagrams.length === 150, 'all of them');
    assert.deepEqual(receiver.datagrams, texts);
    await socket.close();
  });

  it('come as they are, whatever is in them', async () => {
    await using receiver = await DatagramReceiver.open();
    const { socket } = await openSocket(receiver);
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 400 }).map((each) => each.toWellFormed());
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 100 }), async (texts) => {
        receiver.datagrams.length = 0;
        for (const each of texts) socket.send(each, 1);
        socket.flush();
        await eventually(() => receiver.datagrams.length === texts.length, 'all of them');
        assert.deepEqual(receiver.datagrams, texts);
      }),
      { numRuns: 30 },
    );
    await socket.close();
  });

  it('go by Node, still in their order, when the system takes no more', async () => {
    await using receiver = await DatagramReceiver.open();
    const { socket, count } = await openSocket(receiver, (call) => (call === 2 ? -EAGAIN : undefined));
    const texts = Array.from({ length: 140 }, (_, at) => `stat_${at}:1|c`);
    for (const text of texts) socket.send(text, 1);
    socket.flush();
    await eventually(() => receiver.datagrams.length === 140, 'all of them');
    assert.deepEqual(receiver.datagrams, texts);
    assert.equal(count('metrics_sent'), 140);
    await socket.close();
  });

  it('are sent without one that is too long for any datagram, which is counted', async () => {
    await using receiver = await DatagramReceiver.open();
    const { socket, count } = await openSocket(receiver);
    socket.send('a:1|c', 1);
    socket.send('x'.repeat(70_000), 1);
    socket.send('b:1|c', 1);
    socket.flush();
    await eventually(() => receiver.datagrams.length === 2, 'both');
    assert.deepEqual(receiver.datagrams, ['a:1|c', 'b:1|c']);
    await eventually(() => count('send_failures') === 1, 'the failure');
    await socket.close();
  });
});
