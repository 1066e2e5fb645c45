// Sinks of statistics in the real program, each with a real receiver on loopback.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DatagramReceiver } from '../support/metric-receivers.ts';
import { startWeir } from '../support/weir-process.ts';

const ADMIN = 'admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }';
const METRICS = 'type.googleapis.com/envoy.config.metrics.v3';

describe('statsd over UDP', () => {
  it('gets a line of each stat that has been used, with what counters have counted since the flush before', async () => {
    await using receiver = await DatagramReceiver.open();
    const configYaml = `${ADMIN}
stats_flush_interval: 0.1s
stats_sinks:
- name: envoy.stat_sinks.statsd
  typed_config:
    "@type": ${METRICS}.StatsdSink
    address: { socket_address: { protocol: UDP, address: 127.0.0.1, port_value: ${receiver.port} } }`;
    await using weir = await startWeir({ configYaml });
    await receiver.until((lines) => lines.includes('proxy.server.live:1|g'));
    await receiver.until((lines) => lines.includes('proxy.http.admin.downstream_rq_total:0|c'));
    const before = receiver.sumOf('proxy.http.admin.downstream_rq_total');
    for (let request = 0; request < 3; request++) await weir.admin('/ready');
    await receiver.until(() => receiver.sumOf('proxy.http.admin.downstream_rq_total') >= before + 3);
    assert.ok(
      receiver.datagrams.every((datagram) => !datagram.includes('\n')),
      'a line a datagram',
    );
    assert.equal(await weir.stat('stat_sinks.statsd.metrics_dropped'), 0);
  });

  it('gets at the end what has come since the last flush', async () => {
    await using receiver = await DatagramReceiver.open();
    const configYaml = `${ADMIN}
stats_flush_interval: 299s
stats_sinks:
- name: envoy.statsd
  typed_config:
    "@type": ${METRICS}.StatsdSink
    prefix: last
    address: { socket_address: { address: 127.0.0.1, port_value: ${receiver.port} } }`;
    await using weir = await startWeir({ configYaml });
    assert.equal(receiver.datagrams.length, 0);
    assert.equal((await weir.stop()).code, 0);
    await receiver.until((lines) => lines.includes('last.server.concurrency:1|g'));
  });
});

describe('sinks without a timer', () => {
  it('are fed when the admin interface is asked for stats', async () => {
    await using receiver = await DatagramReceiver.open();
    const configYaml = `${ADMIN}
stats_flush_on_admin: true
stats_sinks:
- name: envoy.statsd
  typed_config:
    "@type": ${METRICS}.StatsdSink
    address: { socket_address: { address: 127.0.0.1, port_value: ${receiver.port} } }`;
    await using weir = await startWeir({ configYaml });
    assert.equal(receiver.datagrams.length, 0);
    await weir.admin('/stats?filter=nothing');
    await receiver.until((lines) => lines.includes('proxy.server.live:1|g'));
  });
});
