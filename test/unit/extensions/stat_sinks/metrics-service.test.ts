// The metrics service sink with a real service on loopback.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createMetricsServiceSink,
  type MetricsServiceSettings,
} from '../../../../src/extensions/stat_sinks/metrics_service/sink.ts';
import { LISTED_QUANTILES, statTable } from '../../../../src/stats/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { MetricsServiceReceiver } from '../../../support/grpc-receivers.ts';
import { PresentClock } from '../../../support/manual-clock.ts';
import {
  loseTwoFlushes,
  overfill,
  type SinkFixture,
  type SinkSurroundings,
  type SurroundingsOptions,
  sinkFixture,
} from '../../../support/stat-sinks.ts';

const TABLE = statTable({ rq_total: 'counter', rq_active: 'gauge', rq_time: 'histogram:ms' });

async function fixture(
  fields: Partial<MetricsServiceSettings> = {},
  options: SurroundingsOptions & { receiver?: MetricsServiceReceiver } = {},
): Promise<SinkFixture<MetricsServiceReceiver>> {
  const receiver = options.receiver ?? (await new MetricsServiceReceiver().listen());
  const settings: MetricsServiceSettings = {
    service: { target: { kind: 'uri', uri: `127.0.0.1:${receiver.port}` }, metadata: [], timeoutMs: 10_000 },
    generation: 'v3',
    countersAsDeltas: false,
    tagsAsLabels: false,
    hasSummaries: true,
    hasHistograms: true,
    batchSize: 0,
    ...fields,
  };
  return sinkFixture(createMetricsServiceSink, settings, receiver, options);
}

async function record({ store }: SinkSurroundings): Promise<void> {
  const block = store.scope('cluster.web.').allocate(TABLE);
  block.add('rq_total', 3);
  block.set('rq_active', 2);
  block.record('rq_time', 7);
  block.record('rq_time', 4000);
  await store.mergeHistograms();
}

describe('the metrics service sink', () => {
  it('streams a family for each stat, one message a flush, and says in the first who it is', async () => {
    await using given = await fixture();
    const { receiver, sink, flush } = given;
    await record(given);
    await flush(sink);
    await flush(sink);
    await receiver.until(() => receiver.messages.length === 2);
    assert.equal(receiver.streams.length, 1);
    const [first, second] = receiver.messages;
    const { node } = first!.identifier as { node: { id: string; cluster: string } };
    assert.deepEqual([node.id, node.cluster], ['tested', 'tests']);
    assert.equal(second!.identifier, undefined);
    const names = receiver.families.slice(0, 4).map(({ name, type = 'COUNTER' }) => `${type} ${name}`);
    assert.deepEqual(names, [
      'COUNTER cluster.web.rq_total',
      'GAUGE cluster.web.rq_active',
      'SUMMARY cluster.web.rq_time',
      'HISTOGRAM cluster.web.rq_time',
    ]);
    const [counter, gauge] = receiver.families.map(({ metric }) => metric);
    assert.deepEqual(counter, [{ label: [], counter: { value: 3 }, timestamp_ms: 3000 }]);
    assert.deepEqual(gauge, [{ label: [], gauge: { value: 2 }, timestamp_ms: 3000 }]);
  });

  it('sends quantiles and buckets of the interval, both or either', async () => {
    await using given = await fixture();
    const { receiver, sink, flush } = given;
    await record(given);
    await flush(sink);
    await receiver.until(() => receiver.messages.length === 1);
    const [summary, histogram] = receiver.named('cluster.web.rq_time').map(({ metric }) => metric[0]!);
    const told = summary!.summary as { sample_count: number; quantile: { quantile: number; value: number }[] };
    assert.equal(told.sample_count, 2);
    assert.deepEqual(
      told.quantile.map(({ quantile }) => quantile ?? 0),
      [...LISTED_QUANTILES],
    );
    const { bucket } = histogram!.histogram as { bucket: { upper_bound: number; cumulative_count: number }[] };
    const counts = new Map(bucket.map(({ upper_bound, cumulative_count }) => [upper_bound, cumulative_count]));
    assert.deepEqual([counts.get(5) ?? 0, counts.get(10), counts.get(2500), counts.get(5000)], [0, 1, 1, 2]);
    for (const [fields, type] of [
      [{ hasHistograms: false }, 'SUMMARY'],
      [{ hasSummaries: false }, 'HISTOGRAM'],
    ] as const) {
      await using one = await fixture(fields);
      await record(one);
      await one.flush(one.sink);
      await one.receiver.until(() => one.receiver.messages.length === 1);
      assert.deepEqual(
        one.receiver.named('cluster.web.rq_time').map((family) => family.type),
        [type],
      );
    }
  });

  it('sends tags as labels and increments where they are asked for, by the name of the older service', async () => {
    const receiver = await new MetricsServiceReceiver({ generation: 'v2' }).listen();
    await using given = await fixture({ generation: 'v2', tagsAsLabels: true, countersAsDeltas: true }, { receiver });
    const { sink, flush } = given;
    await record(given);
    await flush(sink);
    given.store.scope('cluster.web.').allocate(TABLE).add('rq_total', 2);
    await flush(sink);
    await receiver.until(() => receiver.messages.length === 2);
    const label = [{ name: 'proxy.cluster_name', value: 'web' }];
    assert.deepEqual(
      receiver.named('cluster.rq_total').map(({ metric }) => metric[0]),
      [
        { label, counter: { value: 3 }, timestamp_ms: 3000 },
        { label, counter: { value: 2 }, timestamp_ms: 3000 },
      ],
    );
  });

  it('sends messages of so many families', async () => {
    await using given = await fixture({ batchSize: 3 });
    const { receiver, sink, flush } = given;
    await record(given);
    await flush(sink);
    await receiver.until(() => receiver.families.length === 4);
    assert.deepEqual(
      receiver.messages.map(({ envoy_metrics: families }) => (families as []).length),
      [3, 1],
    );
  });

  it('begins another stream when the service has ended one, and says again who it is', async () => {
    const clock = new PresentClock();
    await using given = await fixture({}, { clock });
    const { receiver, sink, flush } = given;
    receiver.endsAfter = 1;
    await record(given);
    await flush(sink);
    await receiver.until(() => receiver.streams.length === 1);
    while (receiver.streams.length === 1) {
      // What is under way would be taken for stalled.
      if (given.count('queued_bytes') === 0) {
        clock.turn(600);
        await flush(sink);
      }
      await new Promise(setImmediate);
    }
    await receiver.until(() => receiver.streams[1]!.length > 0);
    assert.ok(receiver.streams[1]![0]!.identifier);
  });

  it('drops and counts what nobody takes, and comes back', async () => {
    const clock = new PresentClock();
    const gone = await new MetricsServiceReceiver().listen();
    const { port } = gone;
    await gone[Symbol.asyncDispose]();
    await using given = await fixture({}, { receiver: gone, clock });
    const { sink, flush, count } = given;
    await record(given);
    await loseTwoFlushes(given, 4);
    await using back = await new MetricsServiceReceiver().listen(port);
    clock.turn(30_000);
    await flush(sink);
    await back.until(() => back.messages.length === 1);
    // The library had taken it before there was a connection.
    await flush(sink);
    assert.ok(count('metrics_sent') >= 4);
  });

  it('gives up a service that takes nothing, and never holds more than its bound', async () => {
    const clock = new PresentClock();
    const receiver = await new MetricsServiceReceiver({ isDeaf: true }).listen();
    await using given = await fixture({}, { receiver, clock });
    const { sink, flush, count } = given;
    await overfill(given, () => receiver.until(() => receiver.streams.length === 1));
    assert.equal(count('send_failures'), 0);
    clock.turn(16_000);
    await flush(sink);
    await eventually(() => count('send_failures') === 1, 'the end of the stream');
    assert.equal(count('queued_bytes'), 0);
  });
});
