// Lines as datagrams, to real receivers on loopback, and to some that are not there.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Datagrams } from '../../../../src/extensions/stat_sinks/lines/datagrams.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { DatagramReceiver } from '../../../support/metric-receivers.ts';
import { sinkSurroundings } from '../../../support/stat-sinks.ts';
import { UnixReceiver } from '../../../support/unix-receiver.ts';

function flush(datagrams: Datagrams, ...lines: readonly string[]): void {
  datagrams.begin();
  for (const line of lines) datagrams.send(line);
  datagrams.end();
}

describe('datagrams over UDP', () => {
  it('hold a line each, and come in order, also those that were sent before the socket was ready', async () => {
    await using receiver = await DatagramReceiver.open();
    const { context, count } = sinkSurroundings();
    const datagrams = new Datagrams({ kind: 'udp', ip: '127.0.0.1', port: receiver.port }, { ...context, maxBytes: 0 });
    flush(datagrams, 'a:1|c', 'b:2|c');
    await eventually(() => receiver.datagrams.length === 2, 'two datagrams');
    flush(datagrams, 'c:3|c');
    await eventually(() => receiver.datagrams.length === 3, 'three datagrams');
    assert.deepEqual(receiver.datagrams, ['a:1|c', 'b:2|c', 'c:3|c']);
    assert.equal(count('metrics_sent'), 3);
    await datagrams.close();
  });

  it('hold as many lines as fit, and a longer one alone', async () => {
    await using receiver = await DatagramReceiver.open();
    const { context } = sinkSurroundings();
    const target = { kind: 'udp', ip: '127.0.0.1', port: receiver.port } as const;
    const datagrams = new Datagrams(target, { ...context, maxBytes: 11 });
    flush(datagrams, 'a:1|c', 'b:2|c', 'ä:3|c', 'longer.than.that:4|c', 'd:5|c');
    await eventually(() => receiver.lines.length === 5, 'five lines');
    assert.deepEqual(receiver.datagrams, ['a:1|c\nb:2|c', 'ä:3|c', 'longer.than.that:4|c', 'd:5|c']);
    await datagrams.close();
  });

  it('go on when whoever listened is back, each refusal being counted', async () => {
    const first = await DatagramReceiver.open();
    const { port } = first;
    await first[Symbol.asyncDispose]();
    const { context, count } = sinkSurroundings();
    const datagrams = new Datagrams({ kind: 'udp', ip: '127.0.0.1', port }, { ...context, maxBytes: 0 });
    flush(datagrams, 'a:1|c');
    // The system answers for the port.
    await eventually(() => {
      datagrams.send('a:1|c');
      return count('send_failures') > 0;
    }, 'a refusal');
    await using receiver = await DatagramReceiver.open(port);
    await eventually(() => {
      flush(datagrams, 'b:1|c');
      return receiver.lines.includes('b:1|c');
    }, 'a line after the refusal');
    await datagrams.close();
  });

  it('are dropped and counted while there is no socket, which is tried again after a pause', async () => {
    const clock = new ManualClock();
    const { context, count } = sinkSurroundings({ clock });
    // No route leads to an address of a link without its zone.
    const datagrams = new Datagrams({ kind: 'udp', ip: 'fe80::1', port: 8125 }, { ...context, maxBytes: 0 });
    flush(datagrams, 'a:1|c', 'b:1|c');
    await eventually(() => count('send_failures') === 1, 'a failure');
    assert.equal(count('metrics_dropped'), 2);
    flush(datagrams, 'c:1|c');
    assert.equal(count('metrics_dropped'), 3);
    assert.equal(count('send_failures'), 1, 'not before the pause is over');
    clock.turn(30_000);
    flush(datagrams, 'd:1|c');
    await eventually(() => count('send_failures') === 2, 'another failure');
    assert.equal(count('metrics_dropped'), 4);
    await datagrams.close();
  });
});

describe('datagrams to a unix socket', () => {
  it('come as they were sent', async () => {
    await using receiver = await UnixReceiver.open();
    const { context, count } = sinkSurroundings();
    const datagrams = new Datagrams({ kind: 'pipe', path: receiver.path }, { ...context, maxBytes: 1400 });
    flush(datagrams, 'a:1|c', 'b:2|c');
    await receiver.until(1);
    assert.deepEqual(receiver.datagrams, ['a:1|c\nb:2|c']);
    assert.equal(count('metrics_sent'), 2);
    await datagrams.close();
  });

  it('are dropped while nobody is at the path, and while the receiver has as many as it holds', async () => {
    const clock = new ManualClock();
    const { context, count } = sinkSurroundings({ clock });
    const path = `${UnixReceiver.freshPath()}`;
    const datagrams = new Datagrams({ kind: 'pipe', path }, { ...context, maxBytes: 0 });
    flush(datagrams, 'a:1|c');
    assert.deepEqual([count('metrics_dropped'), count('send_failures')], [1, 1]);
    await using receiver = await UnixReceiver.open(path, { isDeaf: true });
    clock.turn(30_000);
    // More than any receiver is given room for.
    for (let line = 0; line < 5000; line++) flush(datagrams, `${line}:1|c`);
    assert.equal(count('send_failures'), 1, 'a full receiver is no failure');
    assert.ok(count('metrics_sent') > 0);
    assert.equal(count('metrics_sent') + count('metrics_dropped'), 5001);
    await receiver.stop();
    flush(datagrams, 'b:1|c');
    assert.equal(count('send_failures'), 2, 'one that has gone is');
    await datagrams.close();
  });
});
