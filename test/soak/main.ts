// `npm run soak -- --minutes 5 --workers 2`: runs the soak, prints what came of it, and ends with 1 when something that
// must hold did not.

import { parseArgs } from 'node:util';
import { runSoak, type SoakReport } from './soak.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '5' }, workers: { type: 'string', default: '2' } },
});
const seconds = Math.round(Number(values.minutes) * 60);
const workers = Number(values.workers);
if (!(seconds > 0) || !Number.isInteger(workers) || workers < 1) {
  process.stderr.write('usage: npm run soak -- [--minutes 5] [--workers 2]\n');
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
    '',
    ...report.outcomes.map(([outcome, count]) => `${String(count).padStart(9)}  ${outcome}`),
    '',
    ...report.violations.map((violation) => `VIOLATION ${violation}`),
    report.violations.length === 0 ? 'nothing was violated' : `${report.violations.length} violations`,
  ];
  return `${lines.join('\n')}\n`;
}

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());
const report = await runSoak({
  seconds,
  warmUpSeconds: Math.min(60, Math.max(5, seconds / 5)),
  workers,
  churnMs: 3000,
  excuseMs: 5000,
  checksMemory: true,
  signal: stopping.signal,
  onProgress: (text) => void process.stderr.write(`soak: ${text}\n`),
});
process.stdout.write(render(report));
process.exit(report.violations.length === 0 ? 0 : 1);
