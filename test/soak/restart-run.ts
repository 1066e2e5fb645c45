// The restart run: weirs that take over from one another again and again under clients that never rest, over HTTP and TCP,
// ports and a unix socket, with long streams under way and another number of workers each time. Nobody may notice.

import { untilEqual } from '../support/eventually.ts';
import { PORTS, RestartRow } from '../support/restart-row.ts';
import { RestartTraffic, type TrafficCounts } from '../support/restart-traffic.ts';

export interface RestartRunOptions {
  readonly restarts: number;
  /** As many at most, and one at least. */
  readonly workers: number;
  /** Of each client between two things that it does. */
  readonly pauseMs?: number | undefined;
  /** When a process is told to end by its successor. Without it, each has the time that its connections need. */
  readonly parentShutdownS?: number | undefined;
}

export interface RestartReport {
  readonly restarts: number;
  readonly counts: TrafficCounts;
  /** What the last of the row has counted of all requests. */
  readonly counted: number;
  readonly failures: readonly string[];
}

const STREAM_MIB = 100;
const LONG_S = 600;

export async function runRestarts(options: RestartRunOptions): Promise<RestartReport> {
  const { restarts, workers, pauseMs, parentShutdownS } = options;
  const shutdownS = String(parentShutdownS ?? LONG_S);
  await using row = await RestartRow.open(['--drain-time-s', '1', '--parent-shutdown-time-s', shutdownS]);
  const concurrency = (epoch: number): string[] => ['--concurrency', String(1 + (epoch % workers))];
  await row.start(concurrency(0));
  const traffic = new RestartTraffic(pauseMs);
  const host = row.ip;
  for (const place of [{ host, port: PORTS.http }, { host, port: PORTS.single }, { path: row.pipe }]) {
    traffic.keepAlive(place, 8);
    traffic.fresh(place, 4);
  }
  traffic.echo({ host, port: PORTS.tcp }, 8);
  traffic.stream({ host, port: PORTS.http }, 2, STREAM_MIB);
  for (let epoch = 1; epoch <= restarts; epoch++) {
    const before = row.newest;
    const weir = await row.takeOver(concurrency(epoch));
    // Whoever restarts again before that ends the oldest one early.
    if (parentShutdownS === undefined) await weir.untilStat('server.parent_connections', 0);
    else await before.exited;
  }
  const counts = await traffic.stop();
  const name = 'http.web.downstream_rq_completed';
  const failures = [...counts.failures];
  await untilEqual(counts.requests, () => row.newest.stat(name), name).catch((error) => failures.push(String(error)));
  return { restarts, counts, counted: (await row.newest.stat(name)) ?? 0, failures };
}
