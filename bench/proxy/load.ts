// The load generators: wrk for as much as goes, h2load for a fixed rate. Both are child processes pinned to the
// generator's core, and both must see nothing but successes: a contender that fails fast would otherwise win.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { GRPC_FIELDS, GRPC_MESSAGE } from './grpc-call.ts';
import { pinned } from './pinned-process.ts';

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** NaN where the generator does not tell. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Of requests that each came at their time, so that the slowest say something, too. */
export interface FixedRateResult extends LoadResult {
  readonly p999Ms: number;
  readonly maxMs: number;
}

export interface LoadTask {
  readonly cores: string;
  readonly folder: string;
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  /** Bytes that each request sends as its body; GET without. */
  readonly bodyBytes?: number | undefined;
  /** Every request opens a connection of its own. */
  readonly newConnections?: boolean | undefined;
  /** Every request is the call of gRPC. */
  readonly isGrpc?: boolean | undefined;
}

/** Of a generator's run. */
const LONGEST_MS = 600_000;
const MICROSECONDS_PER_MS = 1000;
const MICROSECONDS_PER_SECOND = 1e6;

/** As many requests as the proxy can take. @throws Error when any of them failed. */
export async function runWrk(task: LoadTask): Promise<LoadResult> {
  const script = path.join(task.folder, 'wrk.lua');
  writeFileSync(script, wrkScript(task));
  const options = ['-t', '1', '-c', task.connections, '-d', `${task.seconds}s`, '--timeout', '10s', '-s', script];
  const output = await run(task.cores, ['wrk', ...options.map(String), task.url]);
  const line = output.split('\n').find((text) => text.startsWith('result '));
  if (line === undefined) throw new Error(`wrk said nothing of its result:\n${output}`);
  const [requests, microseconds, p50, p99, ...errors] = line.split(' ').slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    ...number[],
  ];
  if (requests === 0 || errors.some((count) => count > 0)) throw new Error(`requests failed: ${output}`);
  return {
    requests,
    seconds: microseconds / MICROSECONDS_PER_SECOND,
    p50Ms: p50 / MICROSECONDS_PER_MS,
    p99Ms: p99 / MICROSECONDS_PER_MS,
  };
}

function wrkScript({ bodyBytes, newConnections }: LoadTask): string {
  const post = bodyBytes === undefined ? '' : `wrk.method = "POST"\nwrk.body = string.rep("w", ${bodyBytes})\n`;
  const close = newConnections ? 'wrk.headers["Connection"] = "close"\n' : '';
  return `${post}${close}
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("result %d %d %d %d %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
`;
}

/** A fixed rate over all connections together. @throws Error when a request failed or the rate was missed by far. */
export async function runAtRate(task: LoadTask, requestsPerSecond: number): Promise<FixedRateResult> {
  const log = path.join(task.folder, 'h2load.log');
  writeFileSync(log, '');
  const perClient = requestsPerSecond / task.connections;
  const requests = Math.round(requestsPerSecond * task.seconds);
  const rate = ['--rps', perClient, '-n', requests, '-c', task.connections, '-t', 1];
  const output = await run(task.cores, ['h2load', '--h1', ...rate.map(String), '--log-file', log, task.url]);
  const succeeded = Number(/(\d+) succeeded/.exec(output)?.[1] ?? 0);
  if (succeeded !== requests) throw new Error(`requests failed: ${output}`);
  return { ...latencies(log), requests, seconds: Number(/finished in ([\d.]+)s/.exec(output)?.[1] ?? task.seconds) };
}

/**
 * So many requests, as fast as they go. @throws Error when one failed.
 * @param streams of each connection at a time, over HTTP/2; null for HTTP/1.
 */
export async function runCount(
  { cores, connections, url }: LoadTask,
  requests: number,
  streams: number | null = null,
): Promise<void> {
  const numbers = ['-n', requests, '-c', connections, '-t', 1, ...(streams === null ? [] : ['-m', streams])];
  const output = await run(cores, ['h2load', ...(streams === null ? ['--h1'] : []), ...numbers.map(String), url]);
  if (Number(/(\d+) succeeded/.exec(output)?.[1] ?? 0) !== requests) throw new Error(`requests failed: ${output}`);
}

/** As many requests as the proxy can take, over HTTP/2. @throws Error when any of them failed. */
export async function runStreams(task: LoadTask, streams: number): Promise<LoadResult> {
  const { cores, connections, url, seconds } = task;
  const numbers = ['-D', seconds, '-c', connections, '-m', streams, '-t', 1];
  const output = await run(cores, ['h2load', ...numbers.map(String), ...callArguments(task), url]);
  const [done, failed, , lost] =
    /(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout/.exec(output)?.slice(1) ?? [];
  const requests = Number(done ?? 0);
  if (requests === 0 || failed !== '0' || lost !== '0') throw new Error(`requests failed: ${output}`);
  // It counts for so long, and would have to write a line for each request to tell more of their times.
  return { requests, seconds, p50Ms: Number.NaN, p99Ms: Number.NaN };
}

function callArguments({ isGrpc, folder }: LoadTask): readonly string[] {
  if (!isGrpc) return [];
  const message = path.join(folder, 'grpc-message');
  writeFileSync(message, GRPC_MESSAGE);
  return ['-d', message, ...Object.entries(GRPC_FIELDS).flatMap(([name, value]) => ['-H', `${name}: ${value}`])];
}

/** Lines of start in µs, status, duration in µs; the first tenth is the warm-up. */
function latencies(log: string): Pick<FixedRateResult, 'p50Ms' | 'p99Ms' | 'p999Ms' | 'maxMs'> {
  const lines = readFileSync(log, 'latin1').trimEnd().split('\n');
  const measured = lines.slice(Math.floor(lines.length / 10));
  const durations = Float64Array.from(measured, (line) => Number(line.split('\t')[2])).sort();
  const at = (share: number): number => durations[Math.floor((durations.length - 1) * share)]! / MICROSECONDS_PER_MS;
  return { p50Ms: at(0.5), p99Ms: at(0.99), p999Ms: at(0.999), maxMs: at(1) };
}

async function run(cores: string, command: readonly string[]): Promise<string> {
  const [program, ...args] = pinned(cores, command);
  const child = spawn(program!, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: LONGEST_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}:\n${output}`);
  return output;
}
