// A thousand hosts under HTTP checks, once a second each, over TLS with `--tls`: what the main thread pays for them, and what requests notice
// that go to one cluster beside them, at a fixed rate, in turns with a weir without checks. Linux.
// Bars: 35 % of one core on main; p99 with checks at most 1.1 times that without.
// `npm run bench -- health-checks --rounds 5 --seconds 10 --hosts 1000 --tls`

import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { socketAddress, weir } from './proxy/contenders/weir.ts';
import { programVersion } from './proxy/installed.ts';
import { type LoadResult, runAtRate } from './proxy/load.ts';
import { cpuSecondsOfThread, PinnedProcess } from './proxy/pinned-process.ts';
import type { Entrant } from './proxy/rounds.ts';
import { median } from './support/contest.ts';

const MAIN_SHARE_BAR = 0.35;
const P99_BAR = 1.1;
const CONNECTIONS = 16;
const REQUESTS_PER_SECOND = 1000;
const HOSTS_PER_SUBNET = 250;
/** Until all hosts have been checked for the first time and again. */
const WARM_UP_MS = 4000;
const SECURED_WARM_UP_MS = 20_000;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '10' },
    hosts: { type: 'string', default: '1000' },
    tls: { type: 'boolean', default: false },
  },
});
const [rounds, seconds, hosts] = [Number(values.rounds), Number(values.seconds), Number(values.hosts)];
const cores = `0-${os.availableParallelism() - 1}`;

/** All of them are one upstream, at an address of 127/8 each. @param checkPort of checks; 0 for that of the upstream. */
function manyHosts(port: number, fields: object, checkPort = 0): object {
  const addresses = Array.from({ length: hosts }, (_, index) => {
    return `127.1.${Math.floor(index / HOSTS_PER_SUBNET)}.${(index % HOSTS_PER_SUBNET) + 1}`;
  });
  const own = checkPort === 0 ? {} : { health_check_config: { port_value: checkPort } };
  const lbEndpoints = addresses.map((address) => ({ endpoint: { address: socketAddress(port, address), ...own } }));
  return { load_assignment: { cluster_name: 'upstream', endpoints: [{ lb_endpoints: lbEndpoints }] }, ...fields };
}

const CHECK = {
  timeout: '1s',
  interval: '1s',
  no_traffic_interval: '1s',
  initial_jitter: '1s',
  unhealthy_threshold: 3,
  healthy_threshold: 1,
  http_health_check: { path: '/small' },
};
const CHECKS = { health_checks: [CHECK] };
/** Of checks alone: traffic is that of the other proxy. */
const CRITERIA = { mode: 'checks' };
const SECURED_CHECKS = {
  // A thousand handshakes at once are more than one host does within a second, and those that time out begin anew.
  health_checks: [{ ...CHECK, timeout: '20s', initial_jitter: '15s', transport_socket_match_criteria: CRITERIA }],
  transport_socket_matches: [
    {
      name: 'checks',
      match: CRITERIA,
      transport_socket: {
        name: 'tls',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext' },
      },
    },
  ],
};

/** @returns the port of hosts that speak TLS to checks, and what ends them. */
async function startSecured(arena: Arena): Promise<readonly [port: number, process: PinnedProcess]> {
  const port = await arena.reservePort();
  const script = path.join(import.meta.dirname, 'support/tls-host.ts');
  const { certificate, key } = arena.certificate;
  const command = [process.execPath, script, String(port), '0.0.0.0', certificate, key];
  return [port, await PinnedProcess.start(cores, command, port)];
}

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
  const [checkPort, secured] = values.tls ? await startSecured(arena) : [0, undefined];
  await using ends = new AsyncDisposableStack();
  ends.defer(() => secured?.stop());
  const checks = values.tls ? SECURED_CHECKS : CHECKS;
  const checked = weir('checked', PACKAGE_ROOT, { cluster: (port) => manyHosts(port, checks, checkPort) });
  const unchecked = weir('unchecked', PACKAGE_ROOT, { cluster: (port) => manyHosts(port, {}) });
  const entrants = [
    await arena.enter(checked, 'http', cores, 2),
    await arena.enter(unchecked, 'http', cores, 2),
  ] as const;
  await delay(values.tls ? SECURED_WARM_UP_MS : WARM_UP_MS);
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
