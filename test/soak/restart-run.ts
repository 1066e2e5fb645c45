// The restart run: weirs that take over from one another again and again under clients that never rest, over HTTP/1, HTTP/2 and TCP,
// plain and by TLS, ports and a unix socket, with long streams under way and another number of workers each time. Nobody may notice.

import { type JsonObject, socketAddress } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { untilEqual } from '../support/eventually.ts';
import { PORTS, RestartRow } from '../support/restart-row.ts';
import { RestartTraffic, type TrafficCounts } from '../support/restart-traffic.ts';
import { pair, tlsSocket } from '../support/tls-config.ts';

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
const SECURE_PORT = 10_443;
const SERVER_NAME = 'a.example';

export async function runRestarts(options: RestartRunOptions): Promise<RestartReport> {
  const { restarts, workers, pauseMs, parentShutdownS } = options;
  const shutdownS = String(parentShutdownS ?? LONG_S);
  using folder = new CertificateFolder();
  const certificate = await folder.make('server', { altNames: `DNS:${SERVER_NAME}` });
  await using row = await RestartRow.open(['--drain-time-s', '1', '--parent-shutdown-time-s', shutdownS]);
  const concurrency = (epoch: number): string[] => ['--concurrency', String(1 + (epoch % workers))];
  const common = { alpn_protocols: ['h2', 'http/1.1'], tls_certificates: [pair(certificate)] };
  const serving = { configYaml: JSON.stringify(withSecurePort(row.bootstrap(), row.ip, tlsSocket(common))) };
  await row.start(concurrency(0), serving);
  const traffic = new RestartTraffic(pauseMs);
  const host = row.ip;
  const plain = { host, port: PORTS.http };
  const secured = { host, port: SECURE_PORT, secure: { ca: certificate.certificate, servername: SERVER_NAME } };
  for (const place of [plain, { host, port: PORTS.single }, { path: row.pipe }, secured]) {
    traffic.keepAlive(place, 8);
    traffic.fresh(place, 4);
  }
  traffic.echo({ host, port: PORTS.tcp }, 8);
  for (const place of [plain, secured]) {
    traffic.stream(place, 2, STREAM_MIB);
    traffic.http2(place, 4);
    traffic.http2Stream(place, 1, STREAM_MIB);
  }
  for (let epoch = 1; epoch <= restarts; epoch++) {
    const before = row.newest;
    const weir = await row.takeOver(concurrency(epoch), serving);
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

/** With a listener beside the others that does the same as the first, by TLS. */
function withSecurePort(bootstrap: JsonObject, ip: string, transport_socket: object): object {
  const resources = bootstrap.static_resources as { listeners: [JsonObject, ...JsonObject[]] };
  const [chain] = resources.listeners[0].filter_chains as JsonObject[];
  const names = { name: 'https', stat_prefix: 'https', address: socketAddress(ip, SECURE_PORT) };
  const listener = { ...resources.listeners[0], ...names, filter_chains: [{ ...chain, transport_socket }] };
  return { ...bootstrap, static_resources: { ...resources, listeners: [...resources.listeners, listener] } };
}
