// The fault run: everything that weir leans on fails at once, for as long as it is told. Descriptors run out, the disk of
// an access log fills up and is freed, the readers of other logs stall, upstreams stall, clients vanish. What must hold:
// no wrong answer, an admin interface that answers, no thread lost, books that balance once the faults are over, and an
// end with 0 at SIGTERM although logs are stalled.
//
//   start ─► faults ─► peace: all answered, books balanced, nothing left open ─► logs stall again ─► SIGTERM

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  clusterNamed,
  httpFilter,
  type JsonObject,
  listenerWith,
  socketAddress,
  tcpFilter,
} from '../support/bootstrap.ts';
import { Fifo } from '../support/fifo.ts';
import { startWeir } from '../support/weir-process.ts';
import type { Stats } from './books.ts';
import { askInPeace, type FaultGround, runFaultTraffic } from './fault-traffic.ts';
import { Ledger } from './ledger.ts';
import { checkResources, type Resources, resourcesOf } from './resources.ts';
import { untilAtRest } from './rest.ts';
import { SmallDisk } from './small-disk.ts';
import { StallingUpstream } from './stalling-upstream.ts';
import { Upstreams } from './upstreams.ts';

export interface FaultRunOptions {
  readonly seconds: number;
  readonly workers: number;
  /** Ends the faults early; what must hold afterwards is checked all the same. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (text: string) => void;
}

export interface FaultRunReport {
  readonly seconds: number;
  readonly violations: readonly string[];
  readonly outcomes: readonly (readonly [string, number])[];
  readonly before: Resources | undefined;
  /** Amid the faults, when buffers and heaps have grown to what they need; undefined in a short run. */
  readonly warm: Resources | undefined;
  readonly after: Resources | undefined;
  readonly stats: Stats;
}

/** Few more than weir holds before the first client comes; far fewer than the crowd wants. */
const DESCRIPTOR_LIMIT = 200;
const CROWD = 400;
const POLL_MS = 100;
/** By then what is resident has doubled; from there on it goes up and down. */
const WARM_MS = 60_000;
/** How often the disk is freed and the readers of logs wake. */
const RELIEF_MS = 1500;
const PEACEFUL_REQUESTS = 40;
/** Where no disk can be mounted the log stands on one that is always full. */
const LOG_BYTES_WAITING = /^filesystem\.write_total_buffered /;

export async function runFaults(options: FaultRunOptions): Promise<FaultRunReport> {
  const ledger = new Ledger();
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-faults-'));
  const disk = await SmallDisk.make(path.join(folder, 'disk'));
  const [tcpLog, ownLog] = [
    await Fifo.make(path.join(folder, 'tcp.log')),
    await Fifo.make(path.join(folder, 'weir.log')),
  ];
  const pipes = [tcpLog, ownLog];
  for (const pipe of pipes) pipe.openReader();
  const upstreams = await Upstreams.start(1, 0);
  const staller = await StallingUpstream.start();
  const say = options.onProgress ?? ((): void => {});
  let relief: Relief | undefined;
  let warm: Resources | undefined;
  let warming: NodeJS.Timeout | undefined;
  try {
    const bootstrap = faultBootstrap(upstreams, staller, disk.file('http.log'), tcpLog.path);
    await using weir = await startWeir({
      configYaml: JSON.stringify(bootstrap),
      args: ['--concurrency', String(options.workers), '-l', 'debug', '--log-path', ownLog.path],
      descriptorLimit: DESCRIPTOR_LIMIT,
    });
    const ports = await weir.listeners();
    const before = resourcesOf(weir.pid);
    const endsAt = performance.now() + options.seconds * 1000;
    const ground: FaultGround = {
      httpPort: ports.get('http')!.port,
      tcpPort: ports.get('tcp')!.port,
      adminUrl: weir.adminUrl,
      ledger,
      crowd: CROWD,
      isOver: () => performance.now() >= endsAt || options.signal?.aborted === true,
    };
    say(`faults for ${options.seconds} s`);
    warming = setTimeout(() => {
      warm = resourcesOf(weir.pid);
    }, WARM_MS);
    relief = new Relief(weir.pid, disk, pipes);
    relief.every(RELIEF_MS);
    await runFaultTraffic(ground);
    say('peace');
    relief.every(POLL_MS);
    await askInPeace(ground, PEACEFUL_REQUESTS);
    await upstreams.stopAll();
    staller.endConnections();
    const stats = await untilAtRest(weir, ledger, disk.isMounted ? undefined : LOG_BYTES_WAITING);
    const after = resourcesOf(weir.pid);
    checkAfterwards(ledger, stats);
    checkResources(ledger, before, after, false);
    checkResources(ledger, warm, after, true);
    say('SIGTERM while the readers of logs stall');
    relief.stop();
    for (const pipe of pipes) pipe.fill();
    const { code, signal } = await weir.stop();
    if (code !== 0) ledger.violation(`weir ended with ${code ?? signal} at SIGTERM`);
    const { violations, outcomes } = ledger;
    return { seconds: options.seconds, violations, outcomes, before, warm, after, stats };
  } finally {
    clearTimeout(warming);
    relief?.stop();
    await upstreams.stopAll();
    await staller.stop();
    for (const pipe of pipes) pipe.close();
    await disk.unmount();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Lets the disk have room again and the logs be read: what waits goes on, and it begins anew. */
class Relief {
  readonly #relieve: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(pid: number, disk: SmallDisk, pipes: readonly Fifo[]) {
    this.#relieve = () => {
      disk.free();
      process.kill(pid, 'SIGUSR1');
      for (const pipe of pipes) pipe.read();
    };
  }

  every(ms: number): void {
    this.stop();
    this.#timer = setInterval(this.#relieve, ms);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

function checkAfterwards(ledger: Ledger, stats: Stats): void {
  const stat = (name: string): number => stats.get(name) ?? 0;
  if (stat('server.worker_restarts') !== 0) {
    ledger.violation(`server.worker_restarts is ${stat('server.worker_restarts')}`);
  }
  if (stat('http.faults.downstream_rq_2xx') === 0) ledger.violation('no request was answered');
}

function faultBootstrap(upstreams: Upstreams, staller: StallingUpstream, httpLog: string, tcpLog: string): JsonObject {
  const address = socketAddress('127.0.0.1', 0);
  const accessLog = (file: string): JsonObject => ({
    name: 'envoy.access_loggers.file',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog', path: file },
  });
  const cluster = (name: string, port: number): JsonObject => {
    const endpoint = { endpoint: { address: socketAddress('127.0.0.1', port) } };
    const limits = { max_connections: 40, max_requests: 40, max_pending_requests: 40 };
    return clusterNamed(name, {
      connect_timeout: '1s',
      circuit_breakers: { thresholds: [limits] },
      load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] },
    });
  };
  const manager = httpFilter({
    stat_prefix: 'faults',
    access_log: [accessLog(httpLog)],
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          routes: [
            { match: { prefix: '/stall' }, route: { cluster: 'stalling', timeout: '0.3s', idle_timeout: '1s' } },
            { match: { prefix: '/' }, route: { cluster: 'web', timeout: '10s' } },
          ],
        },
      ],
    },
  });
  const raw = tcpFilter({ stat_prefix: 'faults', cluster: 'raw', access_log: [accessLog(tcpLog)] });
  return {
    admin: { address },
    stats_flush_interval: '0.2s',
    static_resources: {
      listeners: [
        listenerWith([manager], { name: 'http', stat_prefix: 'http', address }),
        listenerWith([raw], { name: 'tcp', stat_prefix: 'tcp', address }),
      ],
      clusters: [
        cluster('web', upstreams.httpPorts[0]!),
        cluster('stalling', staller.port),
        cluster('raw', upstreams.tcpPorts[0]!),
      ],
    },
  };
}
