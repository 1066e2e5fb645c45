// A minute with Prometheus: the real server asks the real program every five seconds, in both namings, while requests pass.
// Where it is not installed (Debian: the package `prometheus`) the test is skipped.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setInterval } from 'node:timers/promises';
import { assigned, httpFilter, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { collectOutput, runProgram, startProgram } from '../support/child-process.ts';
import { startEchoUpstream } from '../support/echo-upstream.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const SCRAPES = 12;
/** Far beyond the minute that this takes. */
const LIMIT_MS = 300_000;
const BETWEEN_REQUESTS_MS = 100;
const JOBS = [
  { job_name: 'native', metrics_path: '/stats/prometheus' },
  { job_name: 'strict', metrics_path: '/stats', params: { format: ['prometheus'], naming: ['strict'] } },
];

function bootstrap(upstream: number): string {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
  const filter = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', upstream) } };
  return JSON.stringify({
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: {
      listeners: [listenerWith([filter], { address: socketAddress('127.0.0.1', 0) })],
      clusters: [assigned([{ lb_endpoints: [endpoint] }])],
    },
  });
}

/** Values by job, from Prometheus' own query language. */
type Query = (expression: string) => Promise<Readonly<Record<string, number>>>;

interface Prometheus extends AsyncDisposable {
  readonly query: Query;
  /** Everything it has said. */
  readonly log: () => string;
}

async function startPrometheus(weir: WeirProcess): Promise<Prometheus> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-prometheus-'));
  const file = path.join(folder, 'prometheus.json');
  const target = { static_configs: [{ targets: [new URL(weir.adminUrl).host] }] };
  const config = {
    global: { scrape_interval: '5s', scrape_timeout: '5s' },
    scrape_configs: JOBS.map((job) => ({ ...job, ...target })),
  };
  // Every JSON text is YAML, which it reads.
  await writeFile(file, JSON.stringify(config));
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${folder}/data`, '--web.listen-address=127.0.0.1:0'];
  const program = startProgram('prometheus', args);
  const { output, exited } = collectOutput(program);
  const address = (): string | undefined => /msg="Listening on" address=(\S+)/.exec(output.stderr)?.[1];
  await untilEqual(true, () => address() !== undefined && output.stderr.includes('is ready to receive'), output.stderr);
  return {
    log: () => output.stderr,
    query: async (expression) => {
      const answer = await fetch(`http://${address()}/api/v1/query`, {
        method: 'POST',
        body: new URLSearchParams({ query: expression }),
      });
      assert.equal(answer.status, 200, `${expression}: ${await answer.clone().text()}`);
      const { data } = (await answer.json()) as {
        data: { result: { metric: { job: string }; value: [number, string] }[] };
      };
      return Object.fromEntries(data.result.map(({ metric, value }) => [metric.job, Number(value[1])]));
    },
    async [Symbol.asyncDispose]() {
      program.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}

test('Prometheus reads a minute of traffic without an error, and sees what /stats shows', async (t) => {
  const { code } = await runProgram('sh', ['-c', 'command -v prometheus']);
  if (code !== 0) {
    t.skip('prometheus is not installed');
    return;
  }
  await using upstream = await startEchoUpstream('a');
  await using weir = await startWeir({ configYaml: bootstrap(upstream.port), args: ['--concurrency', '2'] });
  const { port } = (await weir.listeners()).get('main')!;
  await using prometheus = await startPrometheus(weir);
  const { query } = prometheus;

  const giveUpAt = performance.now() + LIMIT_MS;
  let sent = 0;
  for await (const _ of setInterval(BETWEEN_REQUESTS_MS)) {
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    await answer.arrayBuffer();
    sent += 1;
    const scrapes = await query('count_over_time(up[10m])');
    if (JOBS.every(({ job_name }) => scrapes[job_name]! >= SCRAPES)) break;
    assert.ok(performance.now() < giveUpAt, `only ${JSON.stringify(scrapes)} scrapes:\n${prometheus.log()}`);
  }

  assert.deepEqual(await query('min_over_time(up[10m])'), { native: 1, strict: 1 });
  await weir.untilStat('cluster.web.upstream_rq_total', sent);
  await untilEqual(sent, async () => (await query('envoy_cluster_upstream_rq_total')).native, 'requests, native');
  await untilEqual(sent, async () => (await query('envoy_cluster_upstream_rq_total')).strict, 'requests, strict');
  assert.deepEqual(await query('max by (job) (resets(envoy_cluster_upstream_rq_total[10m]))'), {
    native: 0,
    strict: 0,
  });
  const tail = await query(
    'histogram_quantile(0.99, rate(envoy_http_downstream_rq_time_bucket{envoy_http_conn_manager_prefix="ingress"}[10m]))',
  );
  assert.ok(tail.native! > 0, JSON.stringify(tail));
  // Whatever it could not take, such as a series that comes twice or a value out of order, it says there.
  assert.deepEqual(
    prometheus
      .log()
      .split('\n')
      .filter((line) => /level=(?:warn|error)/.test(line)),
    [],
  );
});
