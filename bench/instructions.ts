// What one request costs a worker outside of the kernel, in instructions, as callgrind counts them: `npm run bench --
// instructions --before FOLDER`. The same on a crowded machine as on a quiet one, to one percent and at worst five, where
// times of builds differ by a tenth from one process to the next. Slow: the proxy runs at a fiftieth of its speed.
//
//   --before FOLDER   another built checkout of weir
//   --only A,B        small-get, get-16k, https-small, https-16k, or any other workload of `npm run bench -- proxy` that is
//                     one of HTTP without bodies: h2-small, h2-256x1, h2-tls-256x1 and so on
//   --filters N       HTTP filters before the router, up to three (0)
//   --warm-up N       requests before the first that counts (40000; 4000 over TLS)
//   --count N         requests of each of three rounds, of which the least counts (8000; 2000 over TLS)
//
// Over TLS there are fewer, over 8 connections whatever the workload says, because a run took a quarter of an hour on a crowded
// machine. Handshakes are counted with the requests that follow them: a few percent, of both builds alike.
//
// What it does not see: time in the kernel, which is two thirds of a request, and how well the processor gets on.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { TRAITS } from './proxy/contender.ts';
import { weir } from './proxy/contenders/weir.ts';
import { GRPC_PATH } from './proxy/grpc-call.ts';
import { programVersion } from './proxy/installed.ts';
import { type LoadTask, runCount } from './proxy/load.ts';
import { WORKLOADS, type Workload } from './proxy/workloads.ts';
import { SIMPLE_FILTERS } from './support/simple-filters.ts';

const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    only: { type: 'string', default: 'small-get,get-16k' },
    filters: { type: 'string', default: '0' },
    'warm-up': { type: 'string' },
    count: { type: 'string' },
  },
});

/** What is measured here alone, beside the workloads of rates. */
const SECURED: readonly Workload[] = [
  {
    name: 'https-small',
    title: 'small GET over TLS, 64 keep-alive connections',
    protocol: 'https',
    path: '/small',
    connections: 64,
    bars: {},
  },
  {
    name: 'https-16k',
    title: '16 KB responses over TLS, 64 connections',
    protocol: 'https',
    path: '/16k',
    connections: 64,
    bars: {},
  },
];

/** The warm-up lasts until all that is hot is compiled for good. */
const PLAIN = { warmUp: 40_000, counted: 8_000, mostConnections: Number.POSITIVE_INFINITY };
const OVER_TLS = { warmUp: 4_000, counted: 2_000, mostConnections: 8 };
const ROUNDS = 3;
const CORES = '0-63';
/** The usual times end requests and connections of a proxy that runs at a fiftieth of its speed on a crowded machine. */
const PATIENCE = {
  route: { timeout: '600s' },
  cluster: () => ({ connect_timeout: '60s' }),
  filterChain: { transport_socket_connect_timeout: '3600s' },
};

/** h2load can make its requests as they are. */
function isCounted({ protocol, path: target, bodyBytes, newConnections, fixedRate }: Workload): boolean {
  const isPlainGet = bodyBytes === undefined && target !== GRPC_PATH;
  return protocol !== 'tcp' && isPlainGet && !newConnections && fixedRate === undefined;
}

/** Instructions so far, by thread. */
function counts(pid: number): Map<string, number> {
  const text = execFileSync('callgrind_control', ['-e', String(pid)], { encoding: 'utf8', stdio: 'pipe' });
  const rows = text.matchAll(/Th\s*(\d+)\s+([\d,]+)/g);
  return new Map(Array.from(rows, ([, thread, count]) => [thread!, Number(count!.replaceAll(',', ''))]));
}

/** Instructions per request of the thread that has most to do: the worker. The least of some rounds. */
async function measure(checkout: string, workload: Workload): Promise<number> {
  await using arena = new Arena();
  await arena.startUpstream(CORES, undefined, TRAITS[workload.protocol].upstream === 'https');
  const outFile = `--callgrind-out-file=${path.join(arena.folder, 'callgrind.out')}`;
  const flags = ['--tool=callgrind', '--smc-check=all-non-file', '--separate-threads=yes', '--fair-sched=yes', outFile];
  const contender = weir('weir', checkout, {
    runBy: ['valgrind', '-q', ...flags],
    ...PATIENCE,
    httpFilters: SIMPLE_FILTERS.slice(0, Number(values.filters)),
  });
  const { process: program, port } = await arena.enter(contender, workload.protocol, CORES);
  const { streams } = workload;
  const { isTls, upstream, clientsSpeakHttp2 } = TRAITS[workload.protocol];
  const usual = isTls || upstream === 'https' ? OVER_TLS : PLAIN;
  const counted = Number(values.count ?? usual.counted);
  const connections = Math.min(workload.connections, usual.mostConnections);
  const url = `${isTls ? 'https' : 'http'}://127.0.0.1:${port}${workload.path}`;
  const task: LoadTask = { cores: CORES, folder: arena.folder, url, connections, seconds: 0 };
  const run = (requests: number) => runCount(task, requests, clientsSpeakHttp2 ? (streams ?? 1) : null);
  await run(Number(values['warm-up'] ?? usual.warmUp));
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = counts(program.pid);
    await run(counted);
    const after = counts(program.pid);
    const most = Math.max(...[...after].map(([thread, count]) => count - (before.get(thread) ?? 0)));
    least = Math.min(least, most / counted);
  }
  return least;
}

const missing = ['valgrind', 'h2load'].find((name) => programVersion(name, '--version', /(\d+\.\d+)/) === undefined);
if (missing !== undefined) {
  console.log(`instructions are left out: ${missing} is not installed`);
} else {
  const names = values.only.split(',');
  const known = [...WORKLOADS.filter(isCounted), ...SECURED];
  const unknown = names.filter((wanted) => known.every(({ name }) => name !== wanted));
  if (unknown.length > 0) throw new RangeError(`no such workload here: ${unknown.join(', ')}`);
  for (const workload of known.filter(({ name }) => names.includes(name))) {
    const now = await measure(PACKAGE_ROOT, workload);
    const before = values.before === undefined ? undefined : await measure(path.resolve(values.before), workload);
    const compared = before === undefined ? '' : `, before ${before.toFixed(0)}: ${(now / before).toFixed(3)}`;
    console.log(`${workload.title}: ${now.toFixed(0)} instructions a request${compared}`);
  }
}
