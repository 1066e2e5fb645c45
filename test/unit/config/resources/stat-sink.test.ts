import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { faultTexts, type Json, load, mustLoad, socketAddress } from '../../../support/bootstrap.ts';

const TYPES = 'type.googleapis.com/envoy.config.metrics';
const UDP = { socket_address: { protocol: 'UDP', address: '127.0.0.1', port_value: 8125 } };

function errorsOf(...sinks: readonly Json[]): string[] {
  return faultTexts(load({ stats_sinks: sinks }));
}

describe('a stats sink', () => {
  it('that this build does not have is an error that names it, with its place in the file', () => {
    const yaml = [
      'stats_sinks:',
      '- name: envoy.stat_sinks.wasm',
      '  typed_config:',
      '    "@type": type.googleapis.com/envoy.extensions.stat_sinks.wasm.v3.Wasm',
    ].join('\n');
    const [fault] = load(yaml).faults;
    assert.equal(fault?.severity, 'error');
    assert.equal(fault.path, 'stats_sinks[0].typed_config');
    assert.match(fault.message, /envoy\.stat_sinks\.wasm/);
    assert.equal(fault.line, 4);
  });

  it('is known by either generation of its message and by its name alone', () => {
    const v3 = { name: 'envoy.stat_sinks.statsd', typed_config: { '@type': `${TYPES}.v3.StatsdSink`, address: UDP } };
    const v2 = { name: 'envoy.statsd', typed_config: { '@type': `${TYPES}.v2.StatsdSink`, address: UDP } };
    const oldest = { name: 'envoy.statsd', config: { address: UDP } };
    const expected = {
      name: 'stat_sinks.statsd',
      settings: { prefix: 'proxy', target: { kind: 'udp', ip: '127.0.0.1', port: 8125 } },
    };
    const { statSinks } = mustLoad({ stats_sinks: [v3, v2, oldest] });
    assert.deepEqual(statSinks, [expected, expected, expected]);
  });
});

describe('the settings of statsd', () => {
  const statsd = (fields: { readonly [key: string]: Json }): Json => ({
    name: 'envoy.stat_sinks.statsd',
    typed_config: { '@type': `${TYPES}.v3.StatsdSink`, ...fields },
  });

  it('have a prefix and a unix socket, or a cluster that exists', () => {
    const { statSinks } = mustLoad({
      stats_sinks: [statsd({ address: { pipe: { path: '/run/statsd' } }, prefix: 'mine' })],
    });
    assert.deepEqual(statSinks[0]?.settings, { prefix: 'mine', target: { kind: 'pipe', path: '/run/statsd' } });
    assert.deepEqual(errorsOf(statsd({ tcp_cluster_name: 'nowhere' })), [
      'stats_sinks[0].typed_config.tcp_cluster_name: cluster "nowhere" does not exist',
    ]);
  });

  it('need an IP address with a port', () => {
    assert.deepEqual(errorsOf(statsd({ address: socketAddress('statsd.test', 8125) })), [
      'stats_sinks[0].typed_config.address.socket_address.address: "statsd.test" is not an IP address; statistics are sent to an IP address',
    ]);
    assert.deepEqual(errorsOf(statsd({ address: socketAddress('127.0.0.1', 0) })), [
      'stats_sinks[0].typed_config.address.socket_address.port_value: is required: no datagram can be sent to port 0',
    ]);
    assert.equal(errorsOf(statsd({})).length, 1);
  });
});

describe('the settings of sinks with tags', () => {
  const GRAPHITE = 'type.googleapis.com/envoy.extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink';
  const target = { kind: 'udp', ip: '127.0.0.1', port: 8125 };

  it('have a prefix and a limit of datagrams', () => {
    const limited = { address: UDP, prefix: 'mine', max_bytes_per_datagram: 512 };
    const { statSinks } = mustLoad({
      stats_sinks: [
        { name: 'envoy.stat_sinks.dog_statsd', typed_config: { '@type': `${TYPES}.v3.DogStatsdSink`, address: UDP } },
        { name: 'envoy.dog_statsd', config: { address: UDP } },
        { name: 'envoy.stat_sinks.graphite_statsd', typed_config: { '@type': GRAPHITE, ...limited } },
      ],
    });
    const plain = { name: 'stat_sinks.dog_statsd', settings: { prefix: 'proxy', target, maxBytes: 0 } };
    const graphite = { name: 'stat_sinks.graphite_statsd', settings: { prefix: 'mine', target, maxBytes: 512 } };
    assert.deepEqual(statSinks, [plain, plain, graphite]);
  });

  it('refuse datagrams that no network takes', () => {
    const typed = { '@type': GRAPHITE, address: UDP, max_bytes_per_datagram: 65_508 };
    assert.deepEqual(errorsOf({ name: 'envoy.stat_sinks.graphite_statsd', typed_config: typed }), [
      'stats_sinks[0].typed_config.max_bytes_per_datagram: 65508 exceeds the limit 65507',
    ]);
  });
});
