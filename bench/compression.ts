// What bodies of a megabyte that are being compressed do to small requests beside them, and what the filter costs those that
// it leaves alone. Small requests come at a fixed rate, in turns: alone, beside clients that take the megabytes as they are, and
// beside clients that have them compressed; through a weir without the filter, too. All share the same cores.
// `npm run bench -- compression --rounds 5 --seconds 8 --rate 500 --downloads 4`

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { weir } from './proxy/contenders/weir.ts';
import { programVersion } from './proxy/installed.ts';
import { type LoadResult, runAtRate, runWrk } from './proxy/load.ts';
import type { Entrant } from './proxy/rounds.ts';

/** p99 beside bodies that are compressed over p99 alone. */
const BAR = 2;
const CONNECTIONS = 16;
const TYPES = 'type.googleapis.com/envoy.extensions';

const COMPRESSOR = {
  name: 'envoy.filters.http.compressor',
  typed_config: {
    '@type': `${TYPES}.filters.http.compressor.v3.Compressor`,
    response_direction_config: { common_config: { content_type: ['text/plain', 'application/octet-stream'] } },
    compressor_library: {
      name: 'bench',
      typed_config: { '@type': `${TYPES}.compression.gzip.compressor.v3.Gzip` },
    },
  },
};

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '8' },
    rate: { type: 'string', default: '500' },
    downloads: { type: 'string', default: '4' },
  },
});
const [rounds, seconds, rate] = [Number(values.rounds), Number(values.seconds), Number(values.rate)];

/** Goes on until it is ended. */
function startDownloads(entrant: Entrant, accepted: string): ChildProcess {
  const many = ['-n', '1000000', '-c', values.downloads, '-t', '1', '-H', `accept-encoding: ${accepted}`];
  return spawn('h2load', ['--h1', ...many, `http://127.0.0.1:${entrant.port}/1m`], { stdio: 'ignore' });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
}

async function main(): Promise<void> {
  await using arena = new Arena();
  const cores = `0-${os.availableParallelism() - 1}`;
  await arena.startUpstream(cores);
  const plain = await arena.enter(weir('weir', PACKAGE_ROOT), 'http', cores, 2);
  const filtering = await arena.enter(
    weir('weir-compressor', PACKAGE_ROOT, { httpFilters: [COMPRESSOR] }),
    'http',
    cores,
    2,
  );
  const taskOf = ({ port }: Entrant) => ({
    cores,
    folder: arena.folder,
    url: `http://127.0.0.1:${port}/small`,
    connections: CONNECTIONS,
    seconds,
  });
  const measure = async (accepted: string | null): Promise<LoadResult> => {
    const downloads = accepted === null ? null : startDownloads(filtering, accepted);
    try {
      return await runAtRate(taskOf(filtering), rate);
    } finally {
      if (downloads !== null) await stop(downloads);
    }
  };
  await measure(null);
  const results = { alone: [] as LoadResult[], plain: [] as LoadResult[], compressed: [] as LoadResult[] };
  const costs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    results.alone.push(await measure(null));
    results.plain.push(await measure('identity'));
    results.compressed.push(await measure('gzip'));
    const without = await runWrk(taskOf(plain));
    const beside = await runWrk(taskOf(filtering));
    costs.push(1 - beside.requests / beside.seconds / (without.requests / without.seconds));
  }
  const ratio = (of: readonly LoadResult[]): number =>
    median(of.map(({ p99Ms }, round) => p99Ms / results.alone[round]!.p99Ms));
  const figures = (of: readonly LoadResult[]): string =>
    of.map(({ p50Ms, p99Ms }) => `${p50Ms.toFixed(2)}/${p99Ms.toFixed(2)}`).join(', ');
  const compressed = ratio(results.compressed);
  process.stdout.write(
    [
      `p50/p99 ms of ${rate} small requests/s over ${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s, 2 workers, all on the same cores`,
      `alone: ${figures(results.alone)}`,
      `beside ${values.downloads} downloads of 1 MB: ${figures(results.plain)}; median ratio of p99 ${ratio(results.plain).toFixed(2)}`,
      `beside ${values.downloads} that are compressed: ${figures(results.compressed)}; median ratio of p99 ${compressed.toFixed(2)}, bar ${BAR}: ${compressed <= BAR ? 'reached' : 'MISSED'}`,
      `fewer small requests by the filter that leaves them alone: ${(100 * median(costs)).toFixed(1)} %`,
      '',
    ].join('\n'),
  );
}

const missing = ['h2load', 'wrk'].filter((program) => programVersion(program, '--version', /(\S+)/) === undefined);
if (missing.length > 0) process.stdout.write(`compression is left out: there is no ${missing.join(' and no ')}\n`);
else await main();
