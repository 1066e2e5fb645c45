// The soak: weir as its own process between upstreams that come and go and clients that do everything, for minutes.
// What must hold: every request is answered rightly or cut off for a reason, the books balance, nothing is left over.
//
//   start ─► warm up ─► rest ─► traffic ─► rest ─► SIGTERM
//                        │                  │
//                        └── what is held ──┘ must be the same, within a tolerance
//
// At rest there is neither client nor upstream: everything that was open has to be closed.

import { setTimeout as delay } from 'node:timers/promises';
import { httpFilter, type JsonObject, listenerWith, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import type { Stats } from './books.ts';
import { Ledger } from './ledger.ts';
import { checkResources, type Resources, resourcesOf } from './resources.ts';
import { untilAtRest } from './rest.ts';
import { runTraffic } from './traffic.ts';
import { Upstreams } from './upstreams.ts';

export interface SoakOptions {
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly workers: number;
  /** Between two restarts of upstreams. */
  readonly churnMs: number;
  /** A request may fail for so long after an upstream has come back. */
  readonly excuseMs: number;
  /** Whether to hold memory against the warm state: that takes minutes to mean anything. */
  readonly checksMemory: boolean;
  /** Ends the traffic early; what must hold at rest is checked all the same. */
  readonly signal?: AbortSignal;
  /** Told of each part of the soak as it begins. */
  readonly onProgress?: (text: string) => void;
}

export interface SoakReport {
  readonly seconds: number;
  readonly violations: readonly string[];
  readonly outcomes: readonly (readonly [string, number])[];
  readonly upstreamRestarts: number;
  readonly warm: Resources | undefined;
  readonly end: Resources | undefined;
  /** Resident MiB during the traffic, at equal distances. */
  readonly residentMiB: readonly number[];
  readonly stats: Stats;
}

const UPSTREAM_COUNT = 3;
const POLL_MS = 200;
const MEMORY_SAMPLES = 20;

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const ledger = new Ledger();
  const upstreams = await Upstreams.start(UPSTREAM_COUNT, options.excuseMs);
  try {
    await using weir = await startWeir({
      configYaml: JSON.stringify(bootstrap(upstreams)),
      args: ['--concurrency', String(options.workers), '-l', 'warning'],
    });
    const listeners = await weir.listeners();
    const carry = async (seconds: number): Promise<number[]> => {
      const endsAt = performance.now() + seconds * 1000;
      const isOver = (): boolean => performance.now() >= endsAt || options.signal?.aborted === true;
      const [httpPort, tcpPort] = [listeners.get('http')!.port, listeners.get('tcp')!.port];
      const ground = { weir, httpPort, tcpPort, upstreams, ledger, isOver };
      const memory = sampleMemory(weir.pid, isOver, (seconds * 1000) / MEMORY_SAMPLES);
      await Promise.all([runTraffic(ground), upstreams.churn(isOver, options.churnMs)]);
      return await memory;
    };
    const say = options.onProgress ?? ((): void => {});
    say(`warming up for ${options.warmUpSeconds} s`);
    await carry(options.warmUpSeconds);
    say('at rest');
    await rest(weir, upstreams, ledger);
    const warm = resourcesOf(weir.pid);
    await upstreams.startAll();
    say(`traffic for ${options.seconds} s`);
    const residentMiB = await carry(options.seconds);
    say('at rest');
    const stats = await rest(weir, upstreams, ledger);
    const end = resourcesOf(weir.pid);
    checkResources(ledger, warm, end, options.checksMemory);
    checkProgram(ledger, stats);
    const { code } = await weir.stop();
    if (code !== 0) ledger.violation(`weir ended with ${code} at SIGTERM`);
    const output = weir.output.stdout + weir.output.stderr;
    if (/\[(?:error|critical)\]/.test(output)) ledger.violation(`weir has logged errors: ${output.slice(0, 2000)}`);
    const { seconds } = options;
    const { violations, outcomes } = ledger;
    return { seconds, violations, outcomes, upstreamRestarts: upstreams.restarts, warm, end, residentMiB, stats };
  } finally {
    await upstreams.stopAll();
  }
}

async function rest(weir: WeirProcess, upstreams: Upstreams, ledger: Ledger): Promise<Stats> {
  await upstreams.stopAll();
  return await untilAtRest(weir, ledger);
}

async function sampleMemory(pid: number, isOver: () => boolean, everyMs: number): Promise<number[]> {
  const samples: number[] = [];
  for (let dueAt = performance.now() + everyMs; !isOver(); await delay(POLL_MS)) {
    if (performance.now() < dueAt) continue;
    samples.push(resourcesOf(pid)?.residentMiB ?? 0);
    dueAt += everyMs;
  }
  return samples;
}

function checkProgram(ledger: Ledger, stats: Stats): void {
  const restarts = stats.get('server.worker_restarts');
  if (restarts !== 0) ledger.violation(`server.worker_restarts is ${restarts}`);
  if ((stats.get('http.soak.downstream_rq_2xx') ?? 0) === 0) ledger.violation('no request was answered');
}

function bootstrap(upstreams: Upstreams): JsonObject {
  const address = socketAddress('127.0.0.1', 0);
  const cluster = (name: string, host: string, ports: readonly number[], fields: JsonObject = {}): JsonObject => ({
    name,
    connect_timeout: '5s',
    circuit_breakers: { thresholds: [{ track_remaining: true }] },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: ports.map((port) => ({ endpoint: { address: socketAddress(host, port) } })) }],
    },
    ...fields,
  });
  // Slow readers take longer than any timeout of a route would allow.
  const route = (name: string): JsonObject => ({ cluster: name, timeout: '0s' });
  const manager = httpFilter({
    stat_prefix: 'soak',
    upgrade_configs: [{ upgrade_type: 'websocket' }],
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          routes: [
            { match: { prefix: '/chunked' }, route: route('named') },
            { match: { prefix: '/' }, route: route('web') },
          ],
        },
      ],
    },
  });
  return {
    admin: { address },
    static_resources: {
      listeners: [
        listenerWith([manager], { name: 'http', stat_prefix: 'http', address }),
        listenerWith([tcpFilter({ stat_prefix: 'soak', cluster: 'raw', max_connect_attempts: 3 })], {
          name: 'tcp',
          stat_prefix: 'tcp',
          address,
        }),
      ],
      clusters: [
        cluster('web', '127.0.0.1', upstreams.httpPorts, { lb_policy: 'LEAST_REQUEST' }),
        cluster('named', 'localhost', upstreams.httpPorts, {
          type: 'STRICT_DNS',
          dns_lookup_family: 'V4_ONLY',
          dns_refresh_rate: '1s',
        }),
        cluster('raw', '127.0.0.1', upstreams.tcpPorts),
      ],
    },
  };
}
