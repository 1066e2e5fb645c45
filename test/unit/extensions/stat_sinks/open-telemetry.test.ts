// The OpenTelemetry sink with a real collector on loopback.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { GrpcServiceSettings } from '../../../../src/extensions/stat_sinks/grpc/service-channel.ts';
import {
  createOpenTelemetrySink,
  type OpenTelemetrySettings,
} from '../../../../src/extensions/stat_sinks/open_telemetry/sink.ts';
import { statTable } from '../../../../src/stats/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { OtlpReceiver, status } from '../../../support/grpc-receivers.ts';
import { PresentClock } from '../../../support/manual-clock.ts';
import {
  loseTwoFlushes,
  overfill,
  type SinkFixture,
  type SinkSurroundings,
  type SurroundingsOptions,
  sinkFixture,
} from '../../../support/stat-sinks.ts';

const TABLE = statTable({
  rq_total: 'counter',
  rq_active: 'gauge',
  rq_time: 'histogram:ms',
  budget: 'histogram:percent',
});

function serviceAt(port: number, fields: Partial<GrpcServiceSettings> = {}): GrpcServiceSettings {
  return { target: { kind: 'uri', uri: `127.0.0.1:${port}` }, metadata: [], timeoutMs: 10_000, ...fields };
}

async function fixture(
  fields: Partial<OpenTelemetrySettings> = {},
  options: SurroundingsOptions & { receiver?: OtlpReceiver } = {},
): Promise<SinkFixture<OtlpReceiver>> {
  const receiver = options.receiver ?? (await new OtlpReceiver().listen());
  const settings: OpenTelemetrySettings = {
    service: serviceAt(receiver.port),
    countersAsDeltas: false,
    histogramsAsDeltas: false,
    tagsAsAttributes: true,
    usesExtractedNames: true,
    prefix: '',
    ...fields,
  };
  return sinkFixture(createOpenTelemetrySink, settings, receiver, options);
}

async function record({ store }: SinkSurroundings): Promise<void> {
  for (const name of ['api', 'web']) {
    const block = store.scope(`cluster.${name}.`).allocate(TABLE);
    block.add('rq_total', 3);
    block.set('rq_active', 2);
    block.record('rq_time', 7);
    block.record('rq_time', 4000);
    block.record('budget', 250_000);
  }
  await store.mergeHistograms();
}

const attribute = (value: string): object[] => [{ key: 'proxy.cluster_name', value: { string_value: value } }];
const START = { start_time_unix_nano: 1_000_000_000, time_unix_nano: 3_000_000_000 };
const LAST = { start_time_unix_nano: 2_000_000_000, time_unix_nano: 3_000_000_000 };

describe('the OpenTelemetry sink', () => {
  it('sends the stats of a family as data points of one metric, since the start', async () => {
    await using given = await fixture();
    const { receiver, sink, flush } = given;
    await record(given);
    await flush(sink);
    await receiver.until(() => receiver.requests.length === 1);
    const [request] = receiver.requests as {
      resource_metrics: { resource: unknown; scope_metrics: { scope: { name: string } }[] }[];
    }[];
    assert.deepEqual(request!.resource_metrics[0]!.resource, {
      attributes: [
        { key: 'service.name', value: { string_value: 'tests' } },
        { key: 'service.instance.id', value: { string_value: 'tested' } },
      ],
    });
    assert.equal(request!.resource_metrics[0]!.scope_metrics[0]!.scope.name, 'weir');
    assert.deepEqual(
      receiver.metrics.map(({ name }) => name),
      ['cluster.rq_total', 'cluster.rq_active', 'cluster.budget', 'cluster.rq_time'],
    );
    const [total, active, budget, time] = receiver.metrics;
    assert.deepEqual(total!.sum, {
      data_points: [
        { ...START, as_int: 3, attributes: attribute('api') },
        { ...START, as_int: 3, attributes: attribute('web') },
      ],
      aggregation_temporality: 'AGGREGATION_TEMPORALITY_CUMULATIVE',
      is_monotonic: true,
    });
    assert.deepEqual(active!.gauge!.data_points[1], { ...LAST, as_int: 2, attributes: attribute('web') });
    const point = time!.histogram!.data_points[0]!;
    assert.deepEqual([time!.unit, budget!.unit], ['ms', '1']);
    assert.equal(point.count, 2);
    const bounds = point.explicit_bounds as number[];
    const buckets = point.bucket_counts as number[];
    assert.equal(buckets.length, bounds.length + 1);
    assert.deepEqual(
      bounds.filter((_, at) => buckets[at] === 1),
      [10, 5000],
    );
    assert.equal(
      buckets.reduce((sum, each) => sum + each, 0),
      2,
    );
    assert.ok(Math.abs((point.sum as number) - 4007) < 60);
    await eventually(() => given.count('metrics_sent') === 8, 'the answer');
  });

  it('sends what has come since the flush before where deltas are asked for', async () => {
    await using given = await fixture({ countersAsDeltas: true, histogramsAsDeltas: true });
    const { receiver, sink, flush, store } = given;
    await record(given);
    await flush(sink);
    store.scope('cluster.web.').allocate(TABLE).add('rq_total', 2);
    await store.mergeHistograms();
    await flush(sink);
    await receiver.until(() => receiver.requests.length === 2);
    const [, second] = receiver.named('cluster.rq_total');
    assert.equal(second!.sum!.aggregation_temporality, 'AGGREGATION_TEMPORALITY_DELTA');
    assert.deepEqual(
      second!.sum!.data_points.map(({ as_int }) => as_int),
      [0, 2],
    );
    assert.deepEqual(second!.sum!.data_points[1], { ...LAST, as_int: 2, attributes: attribute('web') });
    const [before, after] = receiver.named('cluster.rq_time');
    assert.equal(before!.histogram!.aggregation_temporality, 'AGGREGATION_TEMPORALITY_DELTA');
    assert.equal(before!.histogram!.data_points[0]!.count, 2);
    assert.equal(after!.histogram!.data_points[0]!.count ?? 0, 0);
  });

  it('sends whole names, with a prefix and without attributes where that is asked for', async () => {
    await using given = await fixture({ usesExtractedNames: false, tagsAsAttributes: false, prefix: 'mine.' });
    const { receiver, sink, flush } = given;
    await record(given);
    await flush(sink);
    await receiver.until(() => receiver.requests.length === 1);
    const names = receiver.metrics.map(({ name }) => name);
    assert.ok(names.includes('mine.cluster.web.rq_total') && names.includes('mine.cluster.api.rq_time'));
    assert.deepEqual(receiver.named('mine.cluster.web.rq_total')[0]!.sum!.data_points[0]!.attributes, []);
  });

  it('sends a long flush in several calls, none of them too large for a receiver', async () => {
    await using given = await fixture({ usesExtractedNames: false });
    const { receiver, sink, flush, store, count } = given;
    for (let owner = 0; owner < 20_000; owner++) store.scope(`cluster.owner_${owner}.`).counter('rq_total').add(1);
    await flush(sink);
    await receiver.until(() => receiver.metrics.length === 20_000);
    assert.ok(receiver.requests.length > 1);
    assert.ok(Math.max(...receiver.sizes) < 1.5 * 1024 * 1024);
    await eventually(() => count('metrics_sent') === 20_000, 'all answers');
  });

  it('sends its metadata, and counts what a collector refuses', async () => {
    const receiver = await new OtlpReceiver({ refused: 3 }).listen();
    const metadata = [
      { key: 'authorization', value: 'Bearer token' },
      { key: 'trace-bin', value: 'bytes' },
    ];
    await using given = await fixture({ service: serviceAt(receiver.port, { metadata }) }, { receiver });
    await record(given);
    await given.flush(given.sink);
    await eventually(() => given.count('metrics_dropped') === 3, 'three refused');
    assert.equal(given.count('metrics_sent'), 5);
    assert.deepEqual(receiver.metadata[0]!.get('authorization'), ['Bearer token']);
    assert.deepEqual(receiver.metadata[0]!.get('trace-bin'), [Buffer.from('bytes')]);
  });

  it('drops a flush that nobody takes, and finds the collector when it is back', async () => {
    const clock = new PresentClock();
    const gone = await new OtlpReceiver().listen();
    const { port } = gone;
    await gone[Symbol.asyncDispose]();
    await using given = await fixture({}, { receiver: gone, clock });
    const { sink, flush } = given;
    await record(given);
    await loseTwoFlushes(given, 8);
    const back = await new OtlpReceiver().listen(port);
    clock.turn(30_000);
    await flush(sink);
    await back.until(() => back.metrics.length > 0);
    await back[Symbol.asyncDispose]();
  });

  it('gives a call up that is not answered in time', async () => {
    const receiver = await new OtlpReceiver({ hangs: true }).listen();
    await using given = await fixture({ service: serviceAt(receiver.port, { timeoutMs: 50 }) }, { receiver });
    await record(given);
    await given.flush(given.sink);
    await eventually(() => given.count('send_failures') === 1, 'a failure');
    assert.equal(given.count('metrics_dropped'), 8);
    assert.equal(given.count('queued_bytes'), 0);
  });

  it('does not ask a second time at once after an error of the collector, but goes on with the next flush', async () => {
    const receiver = await new OtlpReceiver({ fails: status.INVALID_ARGUMENT }).listen();
    await using given = await fixture({}, { receiver });
    await record(given);
    await given.flush(given.sink);
    await eventually(() => given.count('send_failures') === 1, 'a failure');
    assert.equal(receiver.requests.length, 1);
    receiver.manners.fails = undefined;
    await given.flush(given.sink);
    await eventually(() => given.count('metrics_sent') === 8, 'the next flush');
  });

  it('lets no more than 16 MiB wait for a collector that hangs', async () => {
    const receiver = await new OtlpReceiver({ hangs: true }).listen();
    await using given = await fixture({ usesExtractedNames: false }, { receiver });
    const { sink, count } = given;
    await overfill(given);
    const startedMs = performance.now();
    await sink.close();
    assert.ok(performance.now() - startedMs < 20_000, 'the end does not wait for it');
    assert.equal(count('metrics_sent') + count('metrics_dropped'), 6000);
  });

  it('cannot find a name that is none, and drops what it has', async () => {
    await using given = await fixture({
      service: { ...serviceAt(1), target: { kind: 'uri', uri: 'dns:///nowhere.invalid:4317' } },
    });
    await record(given);
    await given.flush(given.sink);
    await eventually(() => given.count('send_failures') === 1, 'a failure');
    assert.equal(given.count('metrics_dropped'), 8);
  });
});
