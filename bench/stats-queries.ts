// What requests notice of ten queries of statistics a second: their times at a fixed rate through the whole program with two
// workers and some 100,000 counters and 5,000 histograms, in turns: nobody asks, this process is asked, and a bystander is
// asked, a second weir of the same configuration that gets no requests. Where threads share cores, the bystander's queries
// make requests wait as well, for the kernel's scheduler; only what goes beyond that is between weir's own threads.
// Bar: p99 grows by 10 % at most. Linux.
//
//   npm run bench -- stats-queries --rounds 7 --seconds 10

import { once } from 'node:events';
import { Agent, get } from 'node:http';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { socketAddress, weir } from './proxy/contenders/weir.ts';
import { programVersion } from './proxy/installed.ts';
import { type FixedRateResult, runAtRate } from './proxy/load.ts';
import { cpuSecondsOfThread } from './proxy/pinned-process.ts';
import { median } from './support/contest.ts';

const BAR = 1.1;
const CLUSTERS = 950;
const WORKERS = 2;
const CONNECTIONS = 16;
const REQUESTS_PER_SECOND = 1000;
const QUERIES_PER_SECOND = 10;
const WARM_UP_MS = 3000;

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, seconds: { type: 'string', default: '10' } },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const cores = `0-${os.availableParallelism() - 1}`;

/** One after the other, so that all formats are among the ten of a second. */
const QUERIES = [
  '/stats',
  '/stats?format=json',
  '/stats/prometheus',
  `/stats?filter=${encodeURIComponent('idle-77\\d\\.upstream_rq_\\w+$')}`,
];

/** More are not under way at once, however slow the answers are. */
const MOST_UNDER_WAY = 20;

class Asker {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #base: string;
  readonly #underWay = new Set<Promise<void>>();
  #isAsking = false;
  answers = 0;

  constructor(port: number) {
    this.#base = `http://127.0.0.1:${port}`;
  }

  /** Asks at its pace until it is stopped. */
  async run(): Promise<void> {
    this.#isAsking = true;
    for (let at = 0; this.#isAsking; at += 1) {
      const pause = delay(1000 / QUERIES_PER_SECOND);
      if (this.#underWay.size < MOST_UNDER_WAY) {
        const asked = this.#ask(QUERIES[at % QUERIES.length]!).finally(() => this.#underWay.delete(asked));
        this.#underWay.add(asked);
      }
      await pause;
    }
    await Promise.all(this.#underWay);
  }

  stop(): void {
    this.#isAsking = false;
  }

  async #ask(query: string): Promise<void> {
    const [response] = await once(get(this.#base + query, { agent: this.#agent }), 'response');
    response.resume();
    await once(response, 'end');
    if (response.statusCode !== 200) throw new Error(`${query} answered ${response.statusCode}`);
    this.answers += 1;
  }
}

interface Turn extends FixedRateResult {
  readonly mainShare: number;
}

async function measure(): Promise<void> {
  const idle = (index: number): object => ({
    name: `idle-${index}`,
    connect_timeout: '1s',
    load_assignment: {
      cluster_name: `idle-${index}`,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(1) } }] }],
    },
  });
  await using arena = new Arena();
  const adminPort = await arena.reservePort();
  await arena.startUpstream(cores);
  const extras = { adminPort, furtherClusters: Array.from({ length: CLUSTERS }, (_, index) => idle(index)) };
  const bystanderPort = await arena.reservePort();
  const bystander = weir('bystander', PACKAGE_ROOT, { ...extras, adminPort: bystanderPort });
  await arena.enter(bystander, 'http', cores, WORKERS);
  const { port, process: proxy } = await arena.enter(weir('weir', PACKAGE_ROOT, extras), 'http', cores, WORKERS);
  const url = `http://127.0.0.1:${port}/small`;
  const task = { cores, folder: arena.folder, url, connections: CONNECTIONS, seconds };
  const askers = { nobody: undefined, bystander: new Asker(bystanderPort), weir: new Asker(adminPort) };
  type Asked = keyof typeof askers;
  const turn = async (asked: Asked): Promise<Turn> => {
    const asker = askers[asked];
    const asking = asker?.run();
    const [before, startMs] = [cpuSecondsOfThread(proxy.pid, proxy.pid), performance.now()];
    const result = await runAtRate(task, REQUESTS_PER_SECOND);
    const mainSeconds = cpuSecondsOfThread(proxy.pid, proxy.pid) - before;
    const mainShare = (mainSeconds * 1000) / (performance.now() - startMs);
    asker?.stop();
    await asking;
    return { ...result, mainShare };
  };
  await delay(WARM_UP_MS);
  for (const asked of ['bystander', 'weir'] as const) await turn(asked);
  askers.weir.answers = 0;
  const turns: Record<Asked, Turn[]> = { nobody: [], bystander: [], weir: [] };
  const order: Asked[] = ['nobody', 'bystander', 'weir'];
  for (let round = 0; round < rounds; round += 1) {
    for (const asked of round % 2 === 0 ? order : order.toReversed()) turns[asked].push(await turn(asked));
  }
  const figures: Record<string, (turn: Turn) => number> = {
    p50: ({ p50Ms }) => p50Ms,
    p99: ({ p99Ms }) => p99Ms,
    'p99.9': ({ p999Ms }) => p999Ms,
    'main, of a core': ({ mainShare }) => mainShare,
  };
  // Turns beside each other share what the machine was doing.
  const growth = (of: (turn: Turn) => number, from: Asked, to: Asked): number =>
    median(turns[to].map((each, round) => of(each) / of(turns[from][round]!)));
  const rows = Object.entries(figures).map(([title, of]) => [
    title,
    {
      'nobody asks': median(turns.nobody.map(of)).toFixed(2),
      'bystander asked': median(turns.bystander.map(of)).toFixed(2),
      'weir asked': median(turns.weir.map(of)).toFixed(2),
      'weir / nobody': growth(of, 'nobody', 'weir').toFixed(2),
      'weir / bystander': growth(of, 'bystander', 'weir').toFixed(2),
    },
  ]);
  const answers = askers.weir.answers / (rounds * seconds);
  process.stdout.write(`${answers.toFixed(1)} answers a second; ms, medians of ${rounds} rounds\n`);
  console.table(Object.fromEntries(rows));
  for (const from of ['nobody', 'bystander'] as const) {
    const times = growth(({ p99Ms }) => p99Ms, from, 'weir');
    const verdict = times <= BAR ? 'reached' : 'MISSED';
    const than = from === 'nobody' ? 'when nobody asks' : 'when the bystander is asked';
    process.stdout.write(`p99 is ${times.toFixed(2)} times that ${than}; bar ${BAR}: ${verdict}\n`);
  }
}

if (process.platform !== 'linux' || programVersion('h2load', '--version', /nghttp2\/(\S+)/) === undefined) {
  process.stdout.write('stats-queries is left out: it needs Linux and h2load\n');
} else await measure();
