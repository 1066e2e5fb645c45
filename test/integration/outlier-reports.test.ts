// What a worker reports of a host, by what happens on the wire: a row of one failure is enough here.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { ConsecutiveKind } from '../../src/snapshot/index.ts';
import { FailureRow } from '../../src/wasm/shared-memory.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { DataPlaneFixture, forwardTo, loopback, routeFor } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { outlierSettings } from '../support/outliers.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const ROW_OF_ONE: JsonObject = {
  consecutive_5xx: 1,
  consecutive_gateway_failure: 1,
  consecutive_local_origin_failure: 1,
};
const SPLIT: JsonObject = { ...ROW_OF_ONE, split_external_local_origin_errors: true };
const BY_STATUS: readonly ConsecutiveKind[] = ['consecutive-gateway-failure', 'consecutive-5xx'];
const BY_CONNECTION: readonly ConsecutiveKind[] = ['consecutive-local-origin-failure'];

interface Bench {
  readonly proxy: DataPlaneFixture;
  /** Of the host. */
  readonly recordAddress: number;
  readonly client: WireClient;
  readonly kinds: () => readonly ConsecutiveKind[];
}

interface Options {
  readonly detection: JsonObject;
  /** What the upstream sends back; nothing listens without. */
  readonly answer?: string | 'reset' | 'silence';
  readonly clock?: ManualClock;
  readonly isTcp?: boolean;
  readonly maxPendingRequests?: number;
  readonly maxStreamDurationMs?: number;
}

async function open(t: TestContext, options: Options): Promise<Bench> {
  const { answer, clock, detection } = options;
  const upstream =
    answer === undefined
      ? undefined
      : await WireUpstream.start((socket) => {
          socket.on('data', () => {
            if (answer === 'reset') socket.resetAndDestroy();
            else if (answer !== 'silence') socket.write(answer);
          });
          if (options.isTcp) socket.write(answer);
        });
  const proxy = new DataPlaneFixture(clock === undefined ? {} : { clock });
  const limits = {
    maxConnections: 10,
    maxPendingRequests: options.maxPendingRequests ?? 10,
    maxRequests: 10,
    maxRetries: 1,
  };
  const cluster = proxy.cluster('web', [loopback(upstream?.port ?? (await unusedPort()))], {
    outlierDetection: outlierSettings(detection),
    connectTimeoutMs: 1000,
    circuitBreakers: { default: limits, high: limits },
  });
  const { maxStreamDurationMs = 0 } = options;
  const route = routeFor('/', forwardTo('web', { timeoutMs: 5000, maxStreamDurationMs }));
  const port = options.isTcp ? await proxy.tcp('web') : await proxy.http([route]);
  const client = new WireClient(port);
  t.after(async () => {
    client.close();
    const closed = proxy.close();
    clock?.turn(1000);
    await closed;
    await upstream?.close();
  });
  const { recordAddress } = cluster.hosts[0]!;
  return { proxy, recordAddress, client, kinds: () => proxy.outliers.map(({ kind }) => kind) };
}

describe('of a request, a worker reports', () => {
  const status = (code: number): string => `HTTP/1.1 ${code} X\r\ncontent-length: 0\r\n\r\n`;
  const cases: readonly (readonly [
    string,
    Partial<Options>,
    number,
    readonly ConsecutiveKind[],
    readonly ConsecutiveKind[],
  ])[] = [
    ['nothing, when it is answered', { answer: status(200) }, 200, [], []],
    ['an answer of 500', { answer: status(500) }, 500, ['consecutive-5xx'], ['consecutive-5xx']],
    ['an answer of 503', { answer: status(503) }, 503, BY_STATUS, BY_STATUS],
    ['a connection that is refused', {}, 503, BY_STATUS, BY_CONNECTION],
    ['a connection that is reset', { answer: 'reset' }, 503, BY_STATUS, BY_CONNECTION],
    ['nothing, when a limit is met', { answer: status(200), maxPendingRequests: 0 }, 503, [], []],
  ];
  for (const [name, options, expectedStatus, joined, apart] of cases) {
    for (const [how, detection, expected] of [
      ['', ROW_OF_ONE, joined],
      [', told apart', SPLIT, apart],
    ] as const) {
      test(name + how, async (t) => {
        const { client, kinds, proxy } = await open(t, { detection, ...options });
        const { status: got } = await client.write(GET).response();
        assert.equal(got, expectedStatus);
        assert.deepEqual(kinds(), expected);
        for (const { cluster } of proxy.outliers) assert.equal(cluster, 'web');
      });
    }
  }

  for (const [how, detection, expected] of [
    ['', ROW_OF_ONE, BY_STATUS],
    [', told apart', SPLIT, BY_CONNECTION],
  ] as const) {
    test(`an answer that does not come in time${how}`, async (t) => {
      const clock = new ManualClock();
      const { client, kinds, proxy } = await open(t, { detection, clock, answer: 'silence' });
      client.write(GET);
      await eventually(() => proxy.clusterStat('web', 'upstream_rq_total') === 1, 'a request');
      clock.turn(5100);
      assert.equal((await client.response()).status, 504);
      assert.deepEqual(kinds(), expected);
    });
  }

  test('nothing, when the stream lasts too long', async (t) => {
    const clock = new ManualClock();
    const options = { detection: ROW_OF_ONE, clock, answer: 'silence', maxStreamDurationMs: 1000 } as const;
    const { client, kinds, proxy } = await open(t, options);
    client.write(GET);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_total') === 1, 'a request');
    clock.turn(1100);
    await client.response();
    assert.deepEqual(kinds(), []);
  });
});

describe('of a proxied connection, a worker reports', () => {
  for (const [how, detection, expected] of [
    ['', ROW_OF_ONE, BY_STATUS],
    [', told apart', SPLIT, BY_CONNECTION],
  ] as const) {
    test(`that it is refused${how}`, async (t) => {
      const { client, kinds } = await open(t, { detection, isTcp: true });
      assert.equal(await client.rest(), '');
      assert.deepEqual(kinds(), expected);
    });

    test(`that it ends the row of those that were refused${how}`, async (t) => {
      const { client, kinds, proxy, recordAddress } = await open(t, { detection, isTcp: true, answer: 'hello' });
      const { records } = proxy.context;
      for (const row of Object.values(FailureRow)) records.addFailure(recordAddress, row);
      await client.until('hello');
      const ended = how === '' ? [FailureRow.serverErrors, FailureRow.gatewayFailures] : [FailureRow.localFailures];
      for (const row of ended) assert.equal(records.addFailure(recordAddress, row), 1);
      assert.deepEqual(kinds(), []);
    });
  }
});
