import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { sampleInterval } from '../../../../src/extensions/stat_sinks/lines/histogram-sample.ts';
import { LineSink, type LineTransport, type TagForm } from '../../../../src/extensions/stat_sinks/lines/line-sink.ts';
import { type HistogramReader, statTable } from '../../../../src/stats/index.ts';
import { sinkSurroundings } from '../../../support/stat-sinks.ts';
import { statsFixture } from '../../../support/stats.ts';

const TABLE = statTable({
  upstream_cx_total: 'counter',
  upstream_cx_active: 'gauge',
  upstream_rq_time: 'histogram:ms',
  upstream_rq_timeout_budget_percent_used: 'histogram:percent',
});

/** Keeps the lines. */
class Lines implements LineTransport {
  readonly sent: string[] = [];

  begin(): void {}

  send(line: string): void {
    this.sent.push(line);
  }

  end(): void {}

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function linesOf(tags: TagForm, prefix = 'proxy', cluster = 'web'): Promise<string[]> {
  const { store, flush } = sinkSurroundings();
  const block = store.scope(`cluster.${cluster}.`).allocate(TABLE);
  block.add('upstream_cx_total', 3);
  block.set('upstream_cx_active', 2);
  block.record('upstream_rq_time', 42);
  block.record('upstream_rq_timeout_budget_percent_used', 250_000);
  store.scope('server.').textReadout('version_text').set('1.0');
  await store.mergeHistograms();
  const transport = new Lines();
  const sink = new LineSink({ prefix, tags }, transport);
  await flush(sink);
  return transport.sent;
}

describe('lines of statsd', () => {
  it('have the whole name, and no text readouts', async () => {
    assert.deepEqual(await linesOf('in-name'), [
      'proxy.cluster.web.upstream_cx_total:3|c',
      'proxy.cluster.web.upstream_cx_active:2|g',
      'proxy.cluster.web.upstream_rq_time:42|ms',
      'proxy.cluster.web.upstream_rq_timeout_budget_percent_used:0.255|h',
    ]);
  });

  it('of DogStatsD have tags behind the value', async () => {
    assert.deepEqual(await linesOf('dog-statsd', 'mine'), [
      'mine.cluster.upstream_cx_total:3|c|#proxy.cluster_name:web',
      'mine.cluster.upstream_cx_active:2|g|#proxy.cluster_name:web',
      'mine.cluster.upstream_rq_time:42|ms|#proxy.cluster_name:web',
      'mine.cluster.upstream_rq_timeout_budget_percent_used:0.255|h|#proxy.cluster_name:web',
    ]);
  });

  it('of Graphite have tags behind the name', async () => {
    assert.deepEqual(await linesOf('graphite'), [
      'proxy.cluster.upstream_cx_total;proxy.cluster_name=web:3|c',
      'proxy.cluster.upstream_cx_active;proxy.cluster_name=web:2|g',
      'proxy.cluster.upstream_rq_time;proxy.cluster_name=web:42|ms',
      'proxy.cluster.upstream_rq_timeout_budget_percent_used;proxy.cluster_name=web:0.255|h',
    ]);
  });

  it('stay one line each, whatever is in names and tags', async () => {
    const odd = 'a|b\nc:d;e=f,g';
    assert.equal((await linesOf('in-name', 'p', odd))[0], 'p.cluster.a_b_c_d;e=f,g.upstream_cx_total:3|c');
    assert.equal(
      (await linesOf('dog-statsd', 'p', odd))[0],
      'p.cluster.upstream_cx_total:3|c|#proxy.cluster_name:a_b_c:d;e=f_g',
    );
    assert.equal(
      (await linesOf('graphite', 'p', odd))[0],
      'p.cluster.upstream_cx_total;proxy.cluster_name=a_b_c_d_e_f,g:3|c',
    );
  });
});

/** A histogram of milliseconds with these samples in its interval. */
async function intervalOf(values: readonly number[]): Promise<HistogramReader> {
  const { store } = statsFixture();
  const block = store.scope('').allocate(statTable({ time: 'histogram:ms' }));
  for (const value of values) block.record('time', value);
  await store.mergeHistograms();
  for await (const batch of store.histograms()) for (const histogram of batch) return histogram;
  throw new Error('no histogram');
}

describe('the values that are sent of a histogram', () => {
  it('are all samples while there are at most a hundred, those below 100 exactly', async () => {
    const values = Array.from({ length: 100 }, (_, at) => at);
    const { values: sent, rate } = sampleInterval(await intervalOf(values));
    assert.deepEqual(sent, values);
    assert.equal(rate, '');
  });

  it('stand each for as many samples as any other when there are more', async () => {
    const values = Array.from({ length: 1000 }, (_, at) => at % 50);
    const { values: sent, rate } = sampleInterval(await intervalOf(values));
    assert.equal(sent.length, 100);
    assert.equal(rate, '0.1');
    assert.deepEqual(
      sent,
      sent.toSorted((a, b) => a - b),
    );
    for (let value = 0; value < 50; value++) assert.equal(sent.filter((each) => each === value).length, 2);
  });

  it('are none of an interval without samples', async () => {
    const histogram = await intervalOf([]);
    assert.deepEqual(sampleInterval(histogram), { values: [], rate: '' });
  });

  it('come to the right count and about the right mean, whatever the samples', async () => {
    const samples = fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 2000 });
    await fc.assert(
      fc.asyncProperty(samples, async (values) => {
        const { values: sent, rate } = sampleInterval(await intervalOf(values));
        assert.match(rate, /^(0\.\d+)?$/);
        const each = rate === '' ? 1 : 1 / Number(rate);
        assert.ok(Math.abs(each * sent.length - values.length) < 1e-3, `${each} times ${sent.length}`);
        const mean = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0) / list.length;
        // Bins are a tenth wide at most, and a rank stands for a hundredth of the samples.
        const widest = Math.max(...values) - Math.min(...values);
        assert.ok(Math.abs(mean(sent) - mean(values)) <= 0.06 * mean(values) + widest / 100 + 1);
      }),
      { numRuns: 50 },
    );
  });
});
