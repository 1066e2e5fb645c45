// A thousand hosts under HTTP checks, once a second each: what the main thread pays for them, and what requests notice
// that go to one cluster beside them, at a fixed rate, in turns with a weir without checks. Linux.
// Bars: 35 % of one core on main; p99 with checks at most 1.1 times that without.
// `npm run bench -- health-checks --rounds 5 --seconds 10 --hosts 1000`

import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { socketAddress, weir } from './proxy/contenders/weir.ts';
import { programVersion } from './proxy/installed.ts';
import { type LoadResult, runAtRate } from './proxy/load.ts';
import { cpuSecondsOfThread } from './proxy/pinned-process.ts';
import type { Entrant } from './proxy/rounds.ts';
import { median } from './support/contest.ts';

const MAIN_SHARE_BAR = 0.35;
const P99_BAR = 1.1;
const CONNECTIONS = 16;
const REQUESTS_PER_SECOND = 1000;
const HOSTS_PER_SUBNET = 250;
/** Until all hosts have been checked for the first time and again. */
const WARM_UP_MS = 4000;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '10' },
    hosts: { type: 'string', default: '1000' },
  },
});
const [rounds, seconds, hosts] = [Number(values.rounds), Number(values.seconds), Number(values.hosts)];
const cores = `0-${os.availableParallelism() - 1}`;

/** All of them are one upstream, at an address of 127/8 each. */
function manyHosts(port: number, fields: object): object {
  const addresses = Array.from({ length: hosts }, (_, index) => {
    return `127.1.${Math.floor(index / HOSTS_PER_SUBNET)}.${(index % HOSTS_PER_SUBNET) + 1}`;
  });
  const lbEndpoints = addresses.map((address) => ({ endpoint: { address: socketAddress(port, address) } }));
  return { load_assignment: { cluster_name: 'upstream', endpoints: [{ lb_endpoints: lbEndpoints }] }, ...fields };
}

const CHECKS = {
  health_checks: [
    {
      timeout: '1s',
      interval: '1s',
      no_traffic_interval: '1s',
      initial_jitter: '1s',
      unhealthy_threshold: 3,
      healthy_threshold: 1,
      http_health_check: { path: '/small' },
    },
  ],
};

interface Turn {
  readonly load: LoadResult;
  /** Of one core. */
  readonly mainShare: number;
}

async function takeTurn(entrant: Entrant, folder: string): Promise<Turn> {
  const { pid } = entrant.process;
  const url = `http://127.0.0.1:${entrant.port}/small`;
  const [before, start] = [cpuSecondsOfThread(pid, pid), performance.now()];
  const load = await runAtRate({ cores, folder, url, connections: CONNECTIONS, seconds }, REQUESTS_PER_SECOND);
  const mainShare = ((cpuSecondsOfThread(pid, pid) - before) * 1000) / (performance.now() - start);
  return { load, mainShare };
}

async function main(): Promise<void> {
  await using arena = new Arena();
  await arena.startUpstream(cores, '0.0.0.0');
  const checked = weir('checked', PACKAGE_ROOT, { cluster: (port) => manyHosts(port, CHECKS) });
  const unchecked = weir('unchecked', PACKAGE_ROOT, { cluster: (port) => manyHosts(port, {}) });
  const entrants = [
    await arena.enter(checked, 'http', cores, 2),
    await arena.enter(unchecked, 'http', cores, 2),
  ] as const;
  await delay(WARM_UP_MS);
  const turns: [Turn, Turn][] = [];
  for (const entrant of entrants) await takeTurn(entrant, arena.folder);
  for (let round = 0; round < rounds; round += 1) {
    turns.push([await takeTurn(entrants[0], arena.folder), await takeTurn(entrants[1], arena.folder)]);
  }
  const share = median(turns.map(([{ mainShare }]) => mainShare));
  const idleShare = median(turns.map(([, { mainShare }]) => mainShare));
  const p99 = median(turns.map(([withChecks, without]) => withChecks.load.p99Ms / without.load.p99Ms));
  const percent = (value: number): string => `${(value * 100).toFixed(1)} %`;
  const verdict = (isReached: boolean): string => (isReached ? 'reached' : 'MISSED');
  process.stdout.write(
    `main thread with ${hosts} checks a second: ${percent(share)} of a core, ${percent(idleShare)} without; ` +
      `bar ${percent(MAIN_SHARE_BAR)}: ${verdict(share <= MAIN_SHARE_BAR)}\n` +
      `p99 of requests beside them, over that without: ${p99.toFixed(2)}; bar ${P99_BAR}: ${verdict(p99 <= P99_BAR)}\n`,
  );
}

const missing = [
  process.platform === 'linux' ? '' : 'Linux',
  programVersion('h2load', '--version', /nghttp2\/(\S+)/) === undefined ? 'h2load' : '',
].filter(Boolean);
if (missing.length > 0) process.stdout.write(`health-checks is left out: there is no ${missing.join(' and no ')}\n`);
else await main();
