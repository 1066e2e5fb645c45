import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LATENCY_FRACTIONS } from '../../../../../src/extensions/stat_sinks/hystrix/records.ts';
import { HystrixStream, type StreamedCluster } from '../../../../../src/extensions/stat_sinks/hystrix/sink.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';

class FakeCluster implements StreamedCluster {
  readonly name: string;
  readonly circuitBreakers = { default: { maxPendingRequests: 77 } };
  readonly size = 3;
  readonly counts: Record<string, number> = {};
  latencies = new Float64Array(LATENCY_FRACTIONS.length).fill(Number.NaN);

  constructor(name: string) {
    this.name = name;
  }

  counted(name: string): number {
    return this.counts[name] ?? 0;
  }

  get requestTimes(): StreamedCluster['requestTimes'] {
    return { quantiles: () => this.latencies };
  }
}

function streamOf(clusters: StreamedCluster[], buckets = 2) {
  const stats = { listeners: 0, batches_dropped: 0, listeners_refused: 0 };
  const stream = new HystrixStream({
    buckets,
    intervalMs: 5000,
    clock: new ManualClock(),
    clusters: () => clusters,
    stats: {
      add: (name) => {
        stats[name] += 1;
      },
      set: (name, value) => {
        stats[name] = value;
      },
    },
  });
  return { stream, stats };
}

type Feed = NonNullable<ReturnType<HystrixStream['listen']>>;

async function batch(feed: Feed): Promise<string> {
  const { value } = await feed.next();
  return value!.join('');
}

async function commands(feed: Feed): Promise<Record<string, unknown>[]> {
  const events = (await batch(feed)).split('\n\n').filter((event) => event.startsWith('data: '));
  const records = events.map((event) => JSON.parse(event.slice('data: '.length)) as Record<string, unknown>);
  return records.filter(({ type }) => type === 'HystrixCommand');
}

test('a batch is, byte for byte, what dashboards of circuit breakers read', async () => {
  const web = new FakeCluster('we"b');
  const { stream } = streamOf([web]);
  const feed = stream.listen()!;
  Object.assign(web.counts, {
    upstream_rq_timeout: 2,
    upstream_rq_per_try_timeout: 1,
    upstream_rq_5xx: 4,
    upstream_rq_4xx: 3,
    'retry.upstream_rq_5xx': 5,
    'retry.upstream_rq_4xx': 6,
    upstream_rq_2xx: 70,
    upstream_rq_pending_overflow: 8,
  });
  web.latencies = Float64Array.of(1, 2.5, 207.5, 4, 5, 6, 7, 8, 9);
  await stream.flush();
  assert.equal(
    await batch(feed),
    'data: {"type": "HystrixCommand", "name": "we\\"b", "group": "NA", "currentTime": 1767225601, ' +
      '"isCircuitBreakerOpen": false, "errorPercentage": 27, "errorCount": 16, "requestCount": 97, ' +
      '"rollingCountCollapsedRequests": 0, "rollingCountExceptionsThrown": 0, "rollingCountFailure": 16, ' +
      '"rollingCountFallbackFailure": 0, "rollingCountFallbackRejection": 0, "rollingCountFallbackSuccess": 0, ' +
      '"rollingCountResponsesFromCache": 0, "rollingCountSemaphoreRejected": 8, "rollingCountShortCircuited": 0, ' +
      '"rollingCountSuccess": 70, "rollingCountThreadPoolRejected": 0, "rollingCountTimeout": 3, ' +
      '"rollingCountBadRequests": 0, "currentConcurrentExecutionCount": 0, "latencyExecute_mean": "null", ' +
      '"latencyExecute": {"0": 1.000000, "25": 2.500000, "50": 207.500000, "75": 4.000000, "90": 5.000000, ' +
      '"95": 6.000000, "99": 7.000000, "99.5": 8.000000, "100": 9.000000}, ' +
      '"propertyValue_circuitBreakerRequestVolumeThreshold": 0, ' +
      '"propertyValue_circuitBreakerSleepWindowInMilliseconds": 0, ' +
      '"propertyValue_circuitBreakerErrorThresholdPercentage": 0, "propertyValue_circuitBreakerForceOpen": false, ' +
      '"propertyValue_circuitBreakerForceClosed": true, "propertyValue_executionIsolationStrategy": "SEMAPHORE", ' +
      '"propertyValue_executionIsolationThreadTimeoutInMilliseconds": 0, ' +
      '"propertyValue_executionIsolationThreadInterruptOnTimeout": false, ' +
      '"propertyValue_executionIsolationSemaphoreMaxConcurrentRequests": 77, ' +
      '"propertyValue_fallbackIsolationSemaphoreMaxConcurrentRequests": 0, "propertyValue_requestCacheEnabled": false, ' +
      '"propertyValue_requestLogEnabled": true, "reportingHosts": 3, ' +
      '"propertyValue_metricsRollingStatisticalWindowInMilliseconds": 5000}\n\n' +
      'data: {"currentPoolSize": 0, "rollingMaxActiveThreads": 0, "currentActiveCount": 0, ' +
      '"currentCompletedTaskCount": 0, "propertyValue_queueSizeRejectionThreshold": 77, "type": "HystrixThreadPool", ' +
      '"reportingHosts": 3, "propertyValue_metricsRollingStatisticalWindowInMilliseconds": 5000, "name": "we\\"b", ' +
      '"currentLargestPoolSize": 0, "currentCorePoolSize": 0, "currentQueueSize": 0, "currentTaskCount": 0, ' +
      '"rollingCountThreadsExecuted": 0, "currentMaximumPoolSize": 0}\n\n' +
      ':\n\n',
  );
});

test('counts are those of the last flushes alone, and begin with the first listener', async () => {
  const web = new FakeCluster('web');
  const { stream } = streamOf([web]);
  web.counts.upstream_rq_2xx = 1000;
  const feed = stream.listen()!;
  const seen: unknown[] = [];
  for (const total of [1001, 1003, 1003, 1003]) {
    web.counts.upstream_rq_2xx = total;
    await stream.flush();
    seen.push((await commands(feed))[0]!.rollingCountSuccess);
  }
  assert.deepEqual(seen, [1, 3, 2, 0]);
});

test('what was counted while nobody listened is not shown', async () => {
  const web = new FakeCluster('web');
  const { stream, stats } = streamOf([web]);
  const first = stream.listen()!;
  await stream.flush();
  first.close();
  assert.equal(stats.listeners, 0);
  web.counts.upstream_rq_5xx = 50;
  await stream.flush();
  const second = stream.listen()!;
  await stream.flush();
  assert.equal((await commands(second))[0]!.errorCount, 0);
});

test('nothing is NaN where there were no requests', async () => {
  const { stream } = streamOf([new FakeCluster('web')]);
  const feed = stream.listen()!;
  await stream.flush();
  const text = await batch(feed);
  assert.doesNotMatch(text, /nan/i);
  assert.match(text, /"errorPercentage": 0, /);
  assert.match(text, /"latencyExecute": \{"0": 0\.000000, "25": 0\.000000, /);
});

test('counters that were set back have not grown', async () => {
  const web = new FakeCluster('web');
  web.counts.upstream_rq_2xx = 10;
  const { stream } = streamOf([web]);
  const feed = stream.listen()!;
  web.counts.upstream_rq_2xx = 4;
  await stream.flush();
  assert.equal((await commands(feed))[0]!.requestCount, 0);
});

test('clusters come and go with the flushes', async () => {
  const clusters = [new FakeCluster('a')];
  const { stream } = streamOf(clusters);
  const feed = stream.listen()!;
  const names = async (): Promise<unknown[]> => {
    await stream.flush();
    return (await commands(feed)).map(({ name }) => name);
  };
  clusters.push(new FakeCluster('b'));
  assert.deepEqual(await names(), ['a', 'b']);
  clusters.shift();
  assert.deepEqual(await names(), ['b']);
});

test('a server without clusters keeps the connection open by a comment', async () => {
  const { stream } = streamOf([]);
  const feed = stream.listen()!;
  await stream.flush();
  assert.equal(await batch(feed), ':\n\n');
});

test('a slow reader misses batches, which are counted, and others do not', async () => {
  const { stream, stats } = streamOf([new FakeCluster('web')]);
  const slow = stream.listen()!;
  const quick = stream.listen()!;
  for (let flush = 0; flush < 3; flush += 1) {
    await stream.flush();
    await batch(quick);
  }
  assert.deepEqual(stats, { listeners: 2, batches_dropped: 2, listeners_refused: 0 });
  assert.match(await batch(slow), /HystrixCommand/);
});

test('as many listen as may, and others once somebody has left', () => {
  const { stream, stats } = streamOf([]);
  const feeds = Array.from({ length: 16 }, () => stream.listen()!);
  assert.equal(stream.listen(), undefined);
  assert.deepEqual(stats, { listeners: 16, batches_dropped: 0, listeners_refused: 1 });
  feeds[3]!.close();
  assert.notEqual(stream.listen(), undefined);
});

test('the end of the server is the end of every stream', async () => {
  const { stream, stats } = streamOf([new FakeCluster('web')]);
  const feed = stream.listen()!;
  stream.close();
  assert.deepEqual(await feed.next(), { done: true, value: undefined });
  assert.equal(stats.listeners, 0);
  await stream.flush();
});
