// A fault in what a stat sink does by itself, between flushes, reaches neither the process of whoever embeds a proxy nor the next
// flush: one is injected into each kind of socket and call. That there are no others is seen to by test/architecture/imports.test.ts.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import type { ActiveCluster, ClusterHost } from '../../../../src/control-plane/index.ts';
import { ClientStream } from '../../../../src/extensions/stat_sinks/grpc/client-stream.ts';
import { UnaryCalls } from '../../../../src/extensions/stat_sinks/grpc/unary-calls.ts';
import { TcpLines } from '../../../../src/extensions/stat_sinks/lines/tcp-lines.ts';
import { UdpSocket } from '../../../../src/extensions/stat_sinks/lines/udp-datagrams.ts';
import { eventually } from '../../../support/eventually.ts';
import { notedFaults } from '../../../support/faults.ts';
import { MetricsServiceReceiver, OtlpReceiver } from '../../../support/grpc-receivers.ts';
import { DatagramReceiver, TcpReceiver } from '../../../support/metric-receivers.ts';
import { sinkSurroundings } from '../../../support/stat-sinks.ts';

function fail(): never {
  throw new Error('injected');
}

/** Counts that cannot be written by one name. */
function countsBut(name: string): { add(name: string): void; set(): void } {
  return {
    add: (given) => (given === name ? fail() : undefined),
    set() {},
  };
}

function serviceAt(port: number) {
  return { target: { kind: 'uri', uri: `127.0.0.1:${port}` }, metadata: [], timeoutMs: 10_000 } as const;
}

describe('a fault of a stat sink is contained', () => {
  for (const [event, count] of [
    ['takes what is written', 'upstream_cx_tx_bytes_total'],
    ['ends', 'upstream_cx_destroy'],
  ] as const) {
    it(`when its TCP connection ${event}`, async () => {
      const { faults, reports } = notedFaults();
      await using receiver = await TcpReceiver.open();
      const cluster = { stats: countsBut(count), settings: { connectTimeoutMs: 5000 } } as unknown as ActiveCluster;
      const address = { kind: 'ip', ip: '127.0.0.1', port: receiver.port } as const;
      const hostOf = (): ClusterHost => ({ cluster, address, connect: () => connect(receiver.port, '127.0.0.1') });
      const lines = new TcpLines('metrics', sinkSurroundings({ faults, hostOf }).context);
      lines.begin();
      lines.send('a:1|c');
      lines.end();
      await receiver.until((got) => got.length === 1);
      await lines.close();
      await eventually(() => reports.length === 1, 'the fault');
      assert.deepEqual(reports, ['the connection of a stats sink: Error: injected']);
    });
  }

  it('when its UDP socket is there, which sends', async () => {
    const { faults, reports } = notedFaults();
    await using receiver = await DatagramReceiver.open();
    const { counts } = sinkSurroundings().context;
    const target = { ip: '127.0.0.1', port: receiver.port };
    const socket = UdpSocket.open(target, undefined, { counts, faults, onLost: fail, onSent: fail })!;
    await eventually(() => reports.length === 1, 'the fault');
    assert.deepEqual(reports, ['the socket of a stats sink: Error: injected']);
    assert.ok(socket.send('a:1|c', 1));
    await receiver.until((got) => got.length === 1);
    await socket.close();
  });

  it('when a call has been answered, and the next is made', async () => {
    const { faults, reports } = notedFaults();
    await using receiver = await new OtlpReceiver().listen();
    const path = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
    const { context } = sinkSurroundings({ faults });
    const calls = new UnaryCalls(serviceAt(receiver.port), { path, onAnswer: fail }, context);
    for (const told of [1, 2]) {
      calls.send({ bytes: Buffer.alloc(0), metrics: 1 });
      await eventually(() => reports.length === told, 'the fault');
    }
    assert.equal(reports[1], 'the gRPC call of a stats sink: Error: injected');
    await calls.close();
  });

  it('when a stream ends', async () => {
    const { faults, reports } = notedFaults();
    await using receiver = await new MetricsServiceReceiver().listen();
    const path = '/envoy.service.metrics.v3.MetricsService/StreamMetrics';
    const { context } = sinkSurroundings({ faults });
    const counts = countsBut('metrics_sent') as unknown as typeof context.counts;
    const stream = new ClientStream(serviceAt(receiver.port), path, { ...context, counts });
    stream.send(1, () => Buffer.alloc(0));
    await receiver.until(() => receiver.messages.length === 1);
    await stream.close();
    assert.deepEqual(reports, ['the gRPC call of a stats sink: Error: injected']);
  });
});
