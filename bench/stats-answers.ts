// Whole answers of GET /stats over HTTP, from the request to the last byte: 100,000 counters and 5,000 histograms in each format
// and filtered, beside prom-client with the same series, in turns; then a million counters. Bars: text and Prometheus 400 ms, JSON
// 600 ms, filtered to 100 names 30 ms; of a million text 3 s and filtered 300 ms, 150 bytes resident for each. The clock is what
// counts; the time of the server's processor stands beside it, because that of the neighbours is in the clock.
//
//   npm run bench -- stats-answers

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { median } from './support/contest.ts';

const ROUNDS = 9;
const MEMORY_SAMPLES = 5;
const MEMORY = path.join(import.meta.dirname, 'support', 'stats-memory.ts');
const SERVER = path.join(import.meta.dirname, 'support', 'stats-server.ts');

interface Ready {
  readonly port: number;
  readonly peerPort: number;
}

interface Answer {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly bytes: number;
}

class StatsServer implements AsyncDisposable {
  readonly #thread: Worker;
  ready!: Ready;

  constructor(data: object) {
    this.#thread = new Worker(SERVER, { workerData: data });
  }

  static async start(clusters: number, hasHistograms: boolean, hasPeer: boolean): Promise<StatsServer> {
    const server = new StatsServer({ clusters, hasHistograms, hasPeer });
    [server.ready] = (await once(server.#thread, 'message')) as [Ready];
    return server;
  }

  async cpuMs(): Promise<number> {
    this.#thread.postMessage(null);
    const [ms] = (await once(this.#thread, 'message')) as [number];
    return ms;
  }

  async ask(url: string): Promise<Answer> {
    const cpuBefore = await this.cpuMs();
    const start = performance.now();
    const [response] = await once(get(url), 'response');
    let bytes = 0;
    for await (const chunk of response) bytes += chunk.length;
    const wallMs = performance.now() - start;
    if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}`);
    return { wallMs, cpuMs: (await this.cpuMs()) - cpuBefore, bytes };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.terminate();
  }
}

interface Asked {
  readonly url: string;
  /** Undefined for what is only compared. */
  readonly barMs?: number;
}

async function inTurns(title: string, from: StatsServer, asked: Readonly<Record<string, Asked>>): Promise<void> {
  const results = new Map(Object.keys(asked).map((name) => [name, [] as Answer[]]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, { url }] of Object.entries(asked)) results.get(name)!.push(await from.ask(url));
  }
  process.stdout.write(`\n${title}, median of ${ROUNDS} rounds\n`);
  const rows = [...results].map(([name, all]) => {
    const { barMs } = asked[name]!;
    const wallMs = median(all.map((answer) => answer.wallMs));
    const cpuMs = median(all.map((answer) => answer.cpuMs));
    const verdict =
      barMs === undefined ? '' : wallMs <= barMs ? 'reached' : cpuMs <= barMs ? 'by the processor' : 'MISSED';
    const fastest = Math.min(...all.map((answer) => answer.wallMs));
    const row = {
      'whole answer, ms': Math.round(wallMs),
      'fastest, ms': Math.round(fastest),
      'processor, ms': Math.round(cpuMs),
      KiB: Math.round(all[0]!.bytes / 1024),
      'bar, ms': barMs ?? '',
      verdict,
    };
    return [name, row];
  });
  console.table(Object.fromEntries(rows));
}

async function hundredThousand(): Promise<void> {
  await using from = await StatsServer.start(5000, true, true);
  const base = `http://127.0.0.1:${from.ready.port}`;
  const filter = encodeURIComponent('service-77\\d\\.upstream_rq_outcome_\\d$');
  await inTurns('100,000 counters and 5,000 histograms', from, {
    text: { url: `${base}/stats`, barMs: 400 },
    JSON: { url: `${base}/stats?format=json`, barMs: 600 },
    Prometheus: { url: `${base}/stats/prometheus`, barMs: 400 },
    'prom-client, the same series': { url: `http://127.0.0.1:${from.ready.peerPort}/` },
    'text, 100 names by a regular expression': { url: `${base}/stats?filter=${filter}`, barMs: 30 },
    'Prometheus, 100 names': { url: `${base}/stats/prometheus?filter=${filter}`, barMs: 30 },
  });
}

async function million(): Promise<void> {
  await using from = await StatsServer.start(50_000, false, false);
  const base = `http://127.0.0.1:${from.ready.port}`;
  const filter = encodeURIComponent('service-777\\d\\.upstream_rq_outcome_\\d$');
  await inTurns('a million counters', from, {
    text: { url: `${base}/stats`, barMs: 3000 },
    'text, 100 names by a regular expression': { url: `${base}/stats?filter=${filter}`, barMs: 300 },
  });
}

/** In processes of their own: what others of this one have given back would be taken off. */
function memory(): void {
  const samples = Array.from({ length: MEMORY_SAMPLES }, () => {
    const text = execFileSync(process.execPath, [...process.execArgv, MEMORY, '50000'], { encoding: 'utf8' });
    return JSON.parse(text) as Record<'made' | 'listed', number>;
  });
  const spread = (when: 'made' | 'listed'): string => {
    const values = samples.map((sample) => sample[when]);
    const range = `${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)}`;
    return `${median(values).toFixed(0)} (${range})`;
  };
  process.stdout.write(
    `\nbytes resident for each of a million, median of ${MEMORY_SAMPLES} processes: ` +
      `${spread('made')}; once they have been listed ${spread('listed')}; bar 150\n`,
  );
}

memory();
await million();
await hundredThousand();
