// `npm run soak -- --minutes 5 --workers 2`: runs the soak, prints what came of it, and ends with 1 when something that
// must hold did not. With `--faults` it is the fault run instead, with `--chaos` the chaos run, with `--churn` the churn run,
// with `--restarts 20` the restart run.

import { parseArgs } from 'node:util';
import { type ChaosRunReport, runChaos } from './chaos-run.ts';
import { type ChurnReport, runChurn } from './churn-run.ts';
import { type FaultRunReport, runFaults } from './fault-run.ts';
import { type RestartReport, runRestarts } from './restart-run.ts';
import { runSoak, type SoakReport } from './soak.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    workers: { type: 'string', default: '2' },
    faults: { type: 'boolean', default: false },
    chaos: { type: 'boolean', default: false },
    churn: { type: 'boolean', default: false },
    restarts: { type: 'string' },
    'pause-ms': { type: 'string' },
    'parent-shutdown-s': { type: 'string' },
    rounds: { type: 'string', default: '10000' },
  },
});
const seconds = Math.round(Number(values.minutes) * 60);
const workers = Number(values.workers);
const rounds = Number(values.rounds);
const restarts = Number(values.restarts ?? 1);
const kinds = [values.faults, values.chaos, values.churn, values.restarts].filter(Boolean).length;
if (!(seconds > 0) || !(rounds > 0) || !(restarts > 0) || !Number.isInteger(workers) || workers < 1 || kinds > 1) {
  process.stderr.write(
    'usage: npm run soak -- [--minutes 5] [--workers 2] [--faults | --chaos | --churn [--rounds 10000] | --restarts 20 [--pause-ms 0] [--parent-shutdown-s 3]]\n',
  );
  process.exit(2);
}

function render(report: SoakReport): string {
  const { stats, warm, end } = report;
  const stat = (name: string): number => stats.get(name) ?? 0;
  const lines = [
    `${report.seconds} s of traffic, ${workers} workers, ${report.upstreamRestarts} restarts of upstreams`,
    `requests: ${stat('http.soak.downstream_rq_total')}, of which 2xx ${stat('http.soak.downstream_rq_2xx')}, ` +
      `4xx ${stat('http.soak.downstream_rq_4xx')}, 5xx ${stat('http.soak.downstream_rq_5xx')}, ` +
      `reset by clients ${stat('http.soak.downstream_rq_rx_reset')}, by the proxy ${stat('http.soak.downstream_rq_tx_reset')}`,
    `connections: HTTP ${stat('http.soak.downstream_cx_total')}, TCP ${stat('tcp.soak.downstream_cx_total')}`,
    `bytes: HTTP ${stat('http.soak.downstream_cx_rx_bytes_total')} in, ${stat('http.soak.downstream_cx_tx_bytes_total')} out; ` +
      `TCP ${stat('tcp.soak.downstream_cx_rx_bytes_total')} in, ${stat('tcp.soak.downstream_cx_tx_bytes_total')} out`,
    `held at rest, warm: ${JSON.stringify(warm)}`,
    `held at rest, end:  ${JSON.stringify(end)}`,
    `resident MiB during the traffic: ${report.residentMiB.join(', ')}`,
    ...renderEnd(report),
  ];
  return `${lines.join('\n')}\n`;
}

function renderFaults(report: FaultRunReport): string {
  const lines = [
    `${report.seconds} s of faults, ${workers} workers`,
    `held before: ${JSON.stringify(report.before)}`,
    `held warm:   ${JSON.stringify(report.warm)}`,
    `held after:  ${JSON.stringify(report.after)}`,
    ...renderEnd(report),
  ];
  return `${lines.join('\n')}\n`;
}

function renderChaos(report: ChaosRunReport): string {
  const percent = (100 * report.successShare).toFixed(3);
  const stats = [...report.stats].filter(([name, value]) => CHAOS_STATS.test(name) && value !== 0);
  const lines = [
    `${report.seconds} s of chaos, ${workers} workers, ${report.changes} changes of upstreams, ${percent} % of requests succeeded`,
    ...stats.map(([name, value]) => `${name}: ${value}`),
    `held when warm: ${JSON.stringify(report.warm)}`,
    `held at the end: ${JSON.stringify(report.end)}`,
    ...renderEnd(report),
  ];
  return `${lines.join('\n')}\n`;
}

function renderChurn(report: ChurnReport): string {
  const lines = [
    `${report.rounds} rounds in ${Math.round(report.seconds)} s, ${workers} workers`,
    `held at rest, warm: ${JSON.stringify(report.warm)}`,
    `held at rest, end:  ${JSON.stringify(report.end)}`,
    ...renderEnd(report),
  ];
  return `${lines.join('\n')}\n`;
}

function renderRestarts({ restarts: row, counts, counted, failures }: RestartReport): string {
  const gibibytes = (counts.streamed / 2 ** 30).toFixed(1);
  const lines = [
    `${row} hot restarts with 1 to ${workers} workers`,
    `${counts.connections} connections, ${counts.requests} requests answered, ${counted} counted, ${gibibytes} GiB in long streams`,
    ...failures.map((failure) => `VIOLATION ${failure}`),
    failures.length === 0 ? 'nothing was violated' : `${failures.length} violations`,
  ];
  return `${lines.join('\n')}\n`;
}

function renderEnd({ outcomes, violations }: Pick<SoakReport, 'outcomes' | 'violations'>): string[] {
  return [
    '',
    ...outcomes.map(([outcome, count]) => `${String(count).padStart(9)}  ${outcome}`),
    '',
    ...violations.map((violation) => `VIOLATION ${violation}`),
    violations.length === 0 ? 'nothing was violated' : `${violations.length} violations`,
  ];
}

const CHAOS_STATS =
  /^cluster\.chaos\.(?:upstream_rq_(?:total|retry|timeout|per_try|[2-5]xx)|outlier_detection\.ejections_enforced|membership_change)/;

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());
const common = {
  seconds,
  workers,
  signal: stopping.signal,
  onProgress: (text: string): void => void process.stderr.write(`soak: ${text}\n`),
};

async function run(): Promise<readonly string[]> {
  if (values.faults) {
    const report = await runFaults(common);
    process.stdout.write(renderFaults(report));
    return report.violations;
  }
  if (values.chaos) {
    const report = await runChaos({ ...common, changeMs: 200, leastSuccessShare: 0.99, checksMemory: true });
    process.stdout.write(renderChaos(report));
    return report.violations;
  }
  if (values.churn) {
    const report = await runChurn({ ...common, rounds, warmUpRounds: Math.min(1000, rounds) });
    process.stdout.write(renderChurn(report));
    return report.violations;
  }
  if (values.restarts !== undefined) {
    const number = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));
    const pauseMs = number(values['pause-ms']);
    const report = await runRestarts({
      restarts,
      workers,
      pauseMs,
      parentShutdownS: number(values['parent-shutdown-s']),
    });
    process.stdout.write(renderRestarts(report));
    return report.failures;
  }
  const report = await runSoak({
    ...common,
    warmUpSeconds: Math.min(60, Math.max(5, seconds / 5)),
    churnMs: 3000,
    excuseMs: 5000,
    checksMemory: true,
  });
  process.stdout.write(render(report));
  return report.violations;
}

process.exit((await run()).length === 0 ? 0 : 1);
