// The metrics of all stats that weir can write, looked at by the tool that Prometheus brings for it. Where that is not
// installed (Debian: the package `prometheus`) the tests are skipped.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { HISTOGRAM_FORMS, type HistogramForm } from '../../src/admin/render/histogram-text.ts';
import { METRIC_STYLES, type MetricStyle } from '../../src/admin/render/metric-style.ts';
import { statsPrometheus } from '../../src/admin/render/stats-prometheus.ts';
import * as stats from '../../src/stats/index.ts';
import { runProgram } from '../support/child-process.ts';
import { statsFixture } from '../support/stats.ts';

/** Where each table stands, and some names that come at run time. */
const PREFIXES: Readonly<Record<string, readonly string[]>> = {
  CLUSTER_STATS: ['cluster.web.', 'cluster.a.blue.', 'cluster.ü.'],
  HEALTH_CHECK_STATS: ['cluster.web.health_check.'],
  OUTLIER_STATS: ['cluster.web.outlier_detection.'],
  MAGLEV_STATS: ['cluster.web.maglev_lb.'],
  RING_HASH_STATS: ['cluster.web.ring_hash_lb.'],
  HTTP1_STATS: ['cluster.web.http1.', 'http1.'],
  TIMEOUT_BUDGET_STATS: ['cluster.web.'],
  MESSAGE_SIZE_STATS: ['cluster.web.'],
  HTTP_STATS: ['http.in.'],
  LISTENER_STATS: ['listener.0.0.0.0_80.', 'listener.[__1]_443.', 'listener.admin.'],
  LISTENER_HTTP_STATS: ['listener.0.0.0.0_80.http.in.'],
  LISTENER_WORKER_STATS: ['listener.0.0.0.0_80.worker_0.'],
  SERVER_STATS: ['server.'],
  WATCHDOG_STATS: ['server.worker_0.', 'main_thread.'],
  TCP_PROXY_STATS: ['tcp.t.'],
};
const AT_RUN_TIME = [
  'cluster.web.upstream_rq_200',
  'cluster.web.upstream_rq_2xx',
  'cluster.web.canary.upstream_rq_503',
];

function isTable(value: unknown): value is stats.StatTable {
  return typeof value === 'object' && value !== null && 'histogramsAt' in value;
}

async function everyStat(): Promise<stats.StatsStore> {
  const { store } = statsFixture();
  for (const [name, table] of Object.entries(stats)) {
    if (!isTable(table)) continue;
    for (const prefix of PREFIXES[name] ?? [`${name.toLowerCase()}.`]) {
      const scope = store.scope(prefix);
      const block = scope.allocate(table);
      for (const row of block.table.rows) if (row.kind === 'histogram') block.record(row.name, 17);
    }
  }
  for (const name of AT_RUN_TIME) store.scope('').counter(name).add();
  store.scope('server.').textReadout('version_text').set('a\\b"c\nd');
  await store.mergeHistograms();
  return store;
}

async function metrics(
  style: MetricStyle,
  histogramForm: HistogramForm = 'none',
  isOpenMetrics = false,
): Promise<string> {
  const selection = { usedOnly: false, filter: undefined, type: 'All', histogramForm, quantiles: undefined } as const;
  const options = { selection, namespace: 'envoy', style, isOpenMetrics, showsTexts: true, hostsOf: [] };
  let text = '';
  for await (const piece of statsPrometheus(await everyStat(), options)) text += piece;
  return text;
}

/** @returns what it says of the metrics, or undefined where it is not installed. */
async function promtool(t: TestContext, text: string): Promise<string[] | undefined> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-promtool-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'metrics');
  await writeFile(file, text);
  const { code, stdout, stderr } = await runProgram('sh', ['-c', 'promtool check metrics <"$1"', 'sh', file]);
  if (code === 127) {
    t.skip('promtool is not installed');
    return undefined;
  }
  assert.ok(code === 0 || code === 3, `${stdout}${stderr}`);
  return `${stdout}${stderr}`.split('\n').filter(Boolean);
}

describe('all stats as metrics', () => {
  it('have no name twice', async () => {
    for (const [style, isOpenMetrics] of METRIC_STYLES.flatMap((each) => [
      [each, false] as const,
      [each, true] as const,
    ])) {
      const names = [...(await metrics(style, 'none', isOpenMetrics)).matchAll(/^# TYPE (\S+) /gm)].map(
        ([, name]) => name!,
      );
      assert.deepEqual(names, [...new Set(names)]);
      assert.deepEqual(
        names.filter((name) => /_(?:counter|gauge|histogram)$/.test(name)),
        [],
      );
    }
  });

  for (const form of HISTOGRAM_FORMS) {
    it(`are clean by the rules of Prometheus, with histogram_buckets=${form}`, async (t) => {
      const said = await promtool(t, await metrics('strict', form));
      if (said !== undefined) assert.deepEqual(said, []);
    });
  }

  it('keep the names that dashboards know, of which no more is said than that they are such', async (t) => {
    const said = await promtool(t, await metrics('native'));
    const known =
      /no help text$|should have "_total" suffix$|abbreviated units$|use base unit|should not have "_(?:total|count)" suffix$/;
    if (said !== undefined)
      assert.deepEqual(
        said.filter((line) => !known.test(line)),
        [],
      );
  });
});
