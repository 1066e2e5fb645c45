// What the access log is told of proxied TCP connections, and when.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { AccessLog } from '../../../../src/data-plane/access-log/access-log.ts';
import type { StreamFacts } from '../../../../src/data-plane/format/stream-facts.ts';
import { shortFlags } from '../../../../src/data-plane/response-flags.ts';
import type { AccessLogSettings } from '../../../../src/snapshot/index.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { CONNECT_TIMEOUT_MS, TcpProxyBench, type TcpProxyBenchOptions } from '../../../support/tcp-proxy-bench.ts';
import type { WireClient } from '../../../support/wire.ts';

const LOG: AccessLogSettings = {
  destination: { kind: 'file', path: '/dev/null' },
  format: { content: { kind: 'text', segments: [] }, omitEmptyValues: false },
  filter: null,
};

type Ending = readonly [options: TcpProxyBenchOptions, act: (bench: TcpProxyBench) => void, expected: string];

const ENDINGS: Readonly<Record<string, Ending>> = {
  'no cluster': [{ settings: { clusters: [{ cluster: 'gone', weight: 1, criteria: null }] } }, () => {}, '   0 NC'],
  'no host': [{ hosts: 0 }, () => {}, ' web  1 UH'],
  'the limit': [
    { cluster: { circuitBreakers: { default: { ...NO_LIMITS, maxConnections: 0 }, high: NO_LIMITS } } },
    () => {},
    ' web  1 UO',
  ],
  'no connection': [
    { settings: { maxConnectAttempts: 2 } },
    (bench: TcpProxyBench) => {
      const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED', errno: -111 });
      for (const attempt of [0, 1]) bench.sockets[attempt]!.refuse(refused);
    },
    ' web 1 from 0 2 UF,URX  delayed connect error: 111',
  ],
  'no connection in time': [
    { settings: { maxConnectAttempts: 2 } },
    (bench: TcpProxyBench) => {
      bench.upstream.refuse(Object.assign(new Error('refused'), { code: 'ECONNREFUSED', errno: -111 }));
      bench.wait(CONNECT_TIMEOUT_MS + 8);
    },
    ' web 1 from 0 2 UF,URX  delayed connect error: 111',
  ],
  'its age': [
    { settings: { maxConnectionDurationMs: 500 } },
    (bench: TcpProxyBench) => {
      bench.upstream.accept();
      bench.wait(512);
    },
    ' web 1 from 1 1 DT max_connection_duration_reached',
  ],
  silence: [
    { settings: { idleTimeoutMs: 500 } },
    (bench: TcpProxyBench) => {
      bench.upstream.accept();
      bench.wait(512);
    },
    ' web 1 from 1 1  tcp_session_idle_timeout',
  ],
};

describe('what a log says', () => {
  async function logged(
    t: TestContext,
    options: TcpProxyBenchOptions,
    act: (bench: TcpProxyBench, wire: WireClient) => void | Promise<void>,
  ) {
    const lines: string[] = [];
    t.mock.method(AccessLog.prototype, 'write', (facts: StreamFacts) => {
      const { accessLogType, bytesReceived, bytesSent, upstreamCluster, attempts } = facts;
      const why = [shortFlags(facts.flags), facts.connectionTerminationDetails, facts.upstreamTransportFailure];
      const upstream = facts.upstream === null ? '' : `${facts.upstream.remote.port} from ${facts.upstream.local.port}`;
      // There is none to speak of.
      assert.equal(facts.upstream?.protocol ?? '', '');
      const bytes = `${bytesReceived}/${bytesSent}`;
      const ms = Math.round(facts.endMs) - 1000;
      lines.push([accessLogType, ms, bytes, upstreamCluster, upstream, attempts, ...why].join(' ').trimEnd());
    });
    const bench = new TcpProxyBench(t, { ...options, settings: { accessLogs: [LOG], ...options.settings } });
    const wire = await bench.client();
    await act(bench, wire);
    await bench.untilClosed();
    return lines;
  }

  test('of a connection: its bytes, and both ends of that to its upstream', async (t) => {
    const lines = await logged(t, {}, async (bench, wire) => {
      bench.upstream.accept();
      wire.write('four');
      await bench.until(() => bench.upstream.received === 'four', 'the bytes');
      bench.upstream.send('seven..');
      await wire.bytes(7);
      bench.wait(1500);
      bench.proxy.destroyConnections();
    });
    assert.deepEqual(lines, ['TcpConnectionEnd 1500 4/7 web 1 from 1 1']);
  });

  test('on the way: at the start, with the upstream, and from time to time', async (t) => {
    const furtherLogEntries = { onStart: true, onConnected: true, intervalMs: 1000 };
    const lines = await logged(t, { settings: { furtherLogEntries } }, (bench) => {
      bench.wait(100);
      bench.upstream.accept();
      bench.wait(2200);
      bench.proxy.destroyConnections();
    });
    assert.deepEqual(lines, [
      'TcpConnectionStart 0 0/0   0',
      'TcpUpstreamConnected 100 0/0 web 1 from 1 1',
      'TcpPeriodic 1000 0/0 web 1 from 1 1',
      'TcpPeriodic 2000 0/0 web 1 from 1 1',
      'TcpConnectionEnd 2300 0/0 web 1 from 1 1',
    ]);
  });

  test('nothing on the way where nobody wants it', async (t) => {
    const furtherLogEntries = { onStart: true, onConnected: true, intervalMs: 1000 };
    const lines = await logged(t, { settings: { accessLogs: [], furtherLogEntries } }, (bench) => {
      bench.upstream.accept();
      bench.wait(1500);
      assert.ok(bench.upstream.isOpen);
      bench.proxy.destroyConnections();
    });
    assert.deepEqual(lines, []);
  });

  for (const [why, [options, act, expected]] of Object.entries(ENDINGS)) {
    test(`of an end for ${why}`, async (t) => {
      const [line, ...others] = await logged(t, options, act);
      assert.equal(line!.replace(/^TcpConnectionEnd \d+ 0\/0/, ''), expected);
      assert.deepEqual(others, []);
    });
  }
});

test('the log of a proxy closes with it, where it has one', (t) => {
  const close = t.mock.method(AccessLog.prototype, 'close');
  new TcpProxyBench(t, {}).proxy.close();
  assert.equal(close.mock.callCount(), 0);
  const { proxy } = new TcpProxyBench(t, { settings: { accessLogs: [LOG] } });
  proxy.close();
  assert.deepEqual(
    close.mock.calls.map(({ this: closed }) => closed),
    [proxy.accessLog],
  );
});
