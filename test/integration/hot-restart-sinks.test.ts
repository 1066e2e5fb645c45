// What sinks of statistics are told by weirs that take over from one another: each thing that is counted once, whoever of the row
// has counted it, and whichever of them ends, by order or by force.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { DatagramReceiver } from '../support/metric-receivers.ts';
import { PIECE, PORTS, RestartRow, untilSaid } from '../support/restart-row.ts';
import type { WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const COUNTER = 'proxy.http.web.downstream_rq_2xx';
/** Connections of a parent go on for the time of a test. */
const ARGS = ['--drain-time-s', '600', '--parent-shutdown-time-s', '601'];

interface TellingRow extends AsyncDisposable {
  readonly row: RestartRow;
  start(): Promise<WeirProcess>;
  takeOver(): Promise<WeirProcess>;
  /** On a connection of its own. */
  request(count: number): Promise<void>;
  untilTold(requests: number): Promise<void>;
  /** Nobody tells any more: what has come. */
  told(): Promise<number>;
}

async function tellingRow(): Promise<TellingRow> {
  const receiver = await DatagramReceiver.open();
  const row = await RestartRow.open(ARGS);
  const stats_sinks: JsonObject[] = [
    {
      name: 'envoy.stat_sinks.statsd',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.config.metrics.v3.StatsdSink',
        prefix: 'proxy',
        address: socketAddress('127.0.0.1', receiver.port),
      },
    },
  ];
  const configYaml = JSON.stringify(row.bootstrap({ stats_sinks }));
  const sum = (): number => receiver.sumOf(COUNTER);
  return {
    row,
    start: () => row.start([], { configYaml }),
    takeOver: () => row.takeOver(['--restart-epoch', '1'], { configYaml }),
    request: async (count) => {
      for (let at = 0; at < count; at += 1) {
        const response = await fetch(`http://${row.ip}:${PORTS.http}/`, { headers: { connection: 'close' } });
        assert.equal(await response.text(), 'ok');
      }
    },
    untilTold: (requests) => untilEqual(requests, sum, 'requests that a sink was told of'),
    told: async () => {
      // Those that wait in the socket are read before a turn of the event loop is over, a few at a time.
      for (let before = -1; before !== receiver.datagrams.length; ) {
        before = receiver.datagrams.length;
        for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
      }
      return sum();
    },
    [Symbol.asyncDispose]: async () => {
      await row[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

test('a killed successor has told what it had taken over, and its parent tells only the rest', async () => {
  await using telling = await tellingRow();
  const parent = await telling.start();
  await telling.request(5);
  await telling.untilTold(5);
  const kept = new WireClient(PORTS.http, telling.row.ip);
  await kept.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n').response();
  // Perhaps not told yet when the next one takes over.
  await telling.request(2);
  const child = await telling.takeOver();
  await telling.request(3);
  await kept.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n').response();
  await telling.untilTold(12);
  await child.stop('SIGKILL');
  await untilSaid(parent, 'hot restart: the process of restart epoch 0 serves again');
  await telling.request(4);
  kept.close();
  assert.equal((await parent.stop()).code, 0);
  await telling.untilTold(16);
  assert.equal(await telling.told(), 16);
});

test('a successor that ends tells what its parent counts until its own end, and nobody tells it again', async () => {
  await using telling = await tellingRow();
  const parent = await telling.start();
  await telling.request(3);
  // A response that goes on for as long as nobody reads it.
  const slow = connect(PORTS.http, telling.row.ip).on('error', () => {});
  slow.write('GET /mib/50 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  await parent.untilStat('http.web.downstream_rq_active', 1);
  const child = await telling.takeOver();
  await telling.request(2);
  const ended = child.stop();
  await untilSaid(parent, 'hot restart: the next process ends this one');
  await new Promise((resolve) => slow.on('close', resolve).resume());
  assert.ok(slow.bytesRead > 50 * PIECE.length);
  assert.equal((await ended).code, 0);
  assert.equal((await parent.exited).code, 0);
  assert.equal(await telling.told(), 6);
});
