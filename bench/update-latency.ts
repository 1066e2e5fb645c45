// What requests notice of updates of a cluster of ten thousand hosts: their times at a fixed rate through the whole program,
// while one host after the other turns ill and well again and each change makes new lists, in turns with none changing.
// Active health checks of a few hosts, whose server gives way in the turns with updates, do it; nobody checks the others, and
// checks go on at the same pace in all turns. Linux.
// Bar: no request waits 1 ms longer. Which request a neighbour on this machine holds up is chance, so p99.9 is compared, and
// the slowest request is shown beside it.
// `npm run bench -- update-latency --rounds 7 --seconds 10 --hosts 10000 --policy MAGLEV`

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { socketAddress, type WeirExtras, weir } from './proxy/contenders/weir.ts';
import { programVersion } from './proxy/installed.ts';
import { type FixedRateResult, runAtRate } from './proxy/load.ts';
import { cpuSecondsOfThread } from './proxy/pinned-process.ts';
import { median } from './support/contest.ts';

const BAR_MS = 1;
const CONNECTIONS = 16;
const REQUESTS_PER_SECOND = 1000;
const WORKERS = 2;
const HOSTS_PER_SUBNET = 250;
/** Hosts that are checked. */
const CHECKED = 2;
/** Hosts that get nearly all requests where weights decide, so that connections to the others do not disturb. */
const BUSY = 16;
const BUSY_WEIGHT = 10_000_000;
const WARM_UP_MS = 3000;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '10' },
    hosts: { type: 'string', default: '10000' },
    policy: { type: 'string', default: 'all' },
  },
});
const [rounds, seconds, hosts] = [Number(values.rounds), Number(values.seconds), Number(values.hosts)];
const cores = `0-${os.availableParallelism() - 1}`;

/** Says that the host is well; every other time that it is not, while it gives way. */
class CheckedServer {
  givesWay = false;
  /** Answers that were another than the one before. */
  changes = 0;
  readonly #last = new Map<string, number>();
  readonly #server = createServer((request, response) => {
    const client = request.headers.host ?? '';
    const last = this.#last.get(client) ?? 200;
    const status = this.givesWay && last === 200 ? 500 : 200;
    if (status !== last) this.changes += 1;
    this.#last.set(client, status);
    response.writeHead(status, { 'content-length': 0 }).end();
  });

  async start(): Promise<number> {
    this.#server.listen(0, '0.0.0.0');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

function address(index: number): string {
  return `127.1.${Math.floor(index / HOSTS_PER_SUBNET)}.${(index % HOSTS_PER_SUBNET) + 1}`;
}

interface Policy {
  readonly cluster: object;
  /** Fields of the route's action. */
  readonly route: object;
  readonly weight: (index: number) => number;
}

const POLICIES: Readonly<Record<string, Policy>> = {
  ROUND_ROBIN: {
    cluster: { lb_policy: 'ROUND_ROBIN' },
    route: {},
    weight: (index) => (index < BUSY ? BUSY_WEIGHT : 1),
  },
  // All requests have one hash.
  MAGLEV: {
    cluster: { lb_policy: 'MAGLEV' },
    route: { hash_policy: [{ connection_properties: { source_ip: true } }] },
    weight: () => 1,
  },
};

/** All hosts are one upstream, at an address of 127/8 each. The last ones are checked, at the port of another server. */
function extras({ cluster, route, weight }: Policy, checkPort: number): WeirExtras {
  const endpoint = (upstreamPort: number, index: number): object => ({
    endpoint: {
      address: socketAddress(upstreamPort, address(index)),
      health_check_config:
        index < hosts - CHECKED
          ? { disable_active_health_check: true }
          : { port_value: checkPort, hostname: `host-${index}` },
    },
    load_balancing_weight: weight(index),
  });
  return {
    route,
    cluster: (upstreamPort) => ({
      ...cluster,
      load_assignment: {
        cluster_name: 'upstream',
        endpoints: [{ lb_endpoints: Array.from({ length: hosts }, (_, index) => endpoint(upstreamPort, index)) }],
      },
      common_lb_config: { update_merge_window: '0s' },
      health_checks: [
        {
          timeout: '1s',
          interval: '0.1s',
          no_traffic_interval: '0.1s',
          unhealthy_threshold: 1,
          healthy_threshold: 1,
          http_health_check: { path: '/' },
        },
      ],
    }),
  };
}

const FIGURES = {
  p50: (turn: Turn): number => turn.p50Ms,
  p99: (turn: Turn): number => turn.p99Ms,
  'p99.9': (turn: Turn): number => turn.p999Ms,
  slowest: (turn: Turn): number => turn.maxMs,
};

interface Turn extends FixedRateResult {
  /** Of a core, that the main thread took. */
  readonly mainShare: number;
}

type Turns = Record<'without' | 'with', Turn[]>;

function report(name: string, turns: Turns, updatesPerSecond: number): void {
  const medianOf = (of: (turn: Turn) => number, which: keyof Turns): number => median(turns[which].map(of));
  const longer = (of: (turn: Turn) => number): number =>
    median(turns.with.map((turn, round) => of(turn) - of(turns.without[round]!)));
  const rows = Object.entries(FIGURES).map(([title, of]) => [
    title,
    {
      'without, ms': medianOf(of, 'without').toFixed(2),
      'with, ms': medianOf(of, 'with').toFixed(2),
      'longer, ms': longer(of).toFixed(2),
    },
  ]);
  const mainShare = (which: keyof Turns): string => `${(100 * medianOf((turn) => turn.mainShare, which)).toFixed(0)} %`;
  process.stdout.write(`\n${name}, ${updatesPerSecond.toFixed(0)} updates a second; medians of ${rounds} rounds\n`);
  console.table(Object.fromEntries(rows));
  const p999 = longer(FIGURES['p99.9']);
  process.stdout.write(
    `main takes ${mainShare('with')} of a core, ${mainShare('without')} without updates; ` +
      `p99.9 is ${p999.toFixed(2)} ms longer; bar ${BAR_MS}: ${p999 <= BAR_MS ? 'reached' : 'MISSED'}\n`,
  );
}

async function measure(name: string, policy: Policy): Promise<void> {
  const checked = new CheckedServer();
  const checkPort = await checked.start();
  await using arena = new Arena();
  await arena.startUpstream(cores, '0.0.0.0');
  const { port, process: proxy } = await arena.enter(
    weir(name, PACKAGE_ROOT, extras(policy, checkPort)),
    'http',
    cores,
    WORKERS,
  );
  const task = {
    cores,
    folder: arena.folder,
    url: `http://127.0.0.1:${port}/small`,
    connections: CONNECTIONS,
    seconds,
  };
  const turn = async (givesWay: boolean): Promise<Turn> => {
    checked.givesWay = givesWay;
    const [before, startMs] = [cpuSecondsOfThread(proxy.pid, proxy.pid), performance.now()];
    const result = await runAtRate(task, REQUESTS_PER_SECOND);
    const mainSeconds = cpuSecondsOfThread(proxy.pid, proxy.pid) - before;
    return { ...result, mainShare: (mainSeconds * 1000) / (performance.now() - startMs) };
  };
  await delay(WARM_UP_MS);
  await turn(true);
  checked.changes = 0;
  const turns: Turns = { without: [], with: [] };
  for (let round = 0; round < rounds; round += 1) {
    // Who goes first changes, so that what drifts meets both.
    for (const givesWay of round % 2 === 0 ? [false, true] : [true, false]) {
      turns[givesWay ? 'with' : 'without'].push(await turn(givesWay));
    }
  }
  report(name, turns, checked.changes / (rounds * seconds));
  checked.stop();
}

const missing = [
  process.platform === 'linux' ? '' : 'Linux',
  programVersion('h2load', '--version', /nghttp2\/(\S+)/) === undefined ? 'h2load' : '',
].filter(Boolean);
if (missing.length > 0) {
  process.stdout.write(`update-latency is left out: there is no ${missing.join(' and no ')}\n`);
} else {
  process.stdout.write(
    `${hosts} hosts, ${WORKERS} workers, ${REQUESTS_PER_SECOND} requests/s over ${CONNECTIONS} connections\n`,
  );
  for (const [name, policy] of Object.entries(POLICIES)) {
    if (values.policy === 'all' || values.policy === name) await measure(name, policy);
  }
}
