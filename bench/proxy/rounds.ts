// Alternating rounds: in every round each contender has its turn on the same core, so that a busy neighbour meets all
// of them alike. Figures of single turns mean little; the ratios within one round do, and their median is what counts.

import { median } from '../support/contest.ts';
import { TRAITS } from './contender.ts';
import { checkGrpcCall, GRPC_PATH } from './grpc-call.ts';
import { type LoadResult, type LoadTask, runAtRate, runCount, runStreams, runWrk } from './load.ts';
import type { PinnedProcess } from './pinned-process.ts';
import type { Workload } from './workloads.ts';

export interface Entrant {
  readonly name: string;
  readonly process: PinnedProcess;
  readonly port: number;
}

export interface Turn extends LoadResult {
  readonly requestsPerSecond: number;
  /** Processor time of the proxy, user and system. */
  readonly cpuMicrosecondsPerRequest: number;
  /** Share of one core that the proxy was busy; well below 1 means that something else was the limit. */
  readonly coreShare: number;
}

export interface ContenderResult {
  readonly name: string;
  readonly requestsPerSecond: number;
  readonly cpuMicrosecondsPerRequest: number;
  readonly coreShare: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Comparison {
  readonly peer: string;
  /** Medians of the ratios weir/peer of each round; for the processor time peer/weir, so that more is better. */
  readonly rate: number;
  readonly cpu: number;
  /** weir/peer: less is better. */
  readonly p99: number;
  /** Quartiles of the compared ratio over the rounds: how far to trust the median. */
  readonly spread: readonly [number, number];
  readonly bar: number | null;
  readonly passed: boolean | null;
}

export interface WorkloadResult {
  readonly workload: string;
  readonly title: string;
  readonly contenders: readonly ContenderResult[];
  readonly comparisons: readonly Comparison[];
  /** What keeps the figures from meaning what they should; empty when nothing does. */
  readonly caveat: string;
}

export interface RoundOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly generatorCores: string;
  readonly folder: string;
}

const WARM_UP_SECONDS = 2;
/** Of each connection. */
const WARM_UP_REQUESTS = 20;
const MICROSECONDS_PER_SECOND = 1e6;

/** @returns the turns of each entrant, after one that warms it up. */
export async function takeRounds(
  workload: Workload,
  entrants: readonly Entrant[],
  options: RoundOptions,
): Promise<Turn[][]> {
  const turns = entrants.map((): Turn[] => []);
  if (workload.path === GRPC_PATH) for (const { port } of entrants) await checkGrpcCall(port);
  for (const entrant of entrants) await warmUp(workload, entrant, options);
  for (let round = 0; round < options.rounds; round += 1) {
    // Every other round runs backwards, so that nobody always follows the same one.
    const order = [...entrants.keys()];
    if (round % 2 === 1) order.reverse();
    for (const at of order) turns[at]!.push(await takeTurn(workload, entrants[at]!, options));
  }
  return turns;
}

/**
 * @param names weir's first; the others are compared with it.
 * @param turns as many of each; those of one place have followed one another.
 */
export function judge(
  workload: Workload,
  names: readonly string[],
  turns: readonly (readonly Turn[])[],
): WorkloadResult {
  const [own, ...peers] = turns;
  const contenders = names.map((name, at) => summary(name, turns[at]!));
  return {
    workload: workload.name,
    title: workload.title,
    contenders,
    caveat: caveatOf(workload, contenders),
    comparisons: peers.map((peer, at) => compare(workload, names[at + 1]!, own!, peer)),
  };
}

/** h2load never ends where a connection is not secured until its time is over, as may happen to a proxy that is cold: so that comes first, by number. */
async function warmUp(workload: Workload, entrant: Entrant, options: RoundOptions): Promise<void> {
  const seconds = WARM_UP_SECONDS;
  const { streams, connections, protocol } = workload;
  if (streams !== undefined && TRAITS[protocol].isTls)
    await runCount(taskOf(workload, entrant, options), connections * WARM_UP_REQUESTS, streams);
  await takeTurn(workload, entrant, { ...options, seconds });
}

function taskOf(workload: Workload, { port }: Entrant, { generatorCores, folder, seconds }: RoundOptions): LoadTask {
  return {
    cores: generatorCores,
    folder,
    url: `${TRAITS[workload.protocol].isTls ? 'https' : 'http'}://127.0.0.1:${port}${workload.path}`,
    connections: workload.connections,
    seconds,
    bodyBytes: workload.bodyBytes,
    newConnections: workload.newConnections,
    isGrpc: workload.path === GRPC_PATH,
  };
}

async function takeTurn(workload: Workload, entrant: Entrant, options: RoundOptions): Promise<Turn> {
  const { name, process } = entrant;
  const task = taskOf(workload, entrant, options);
  const cpuBefore = process.cpuSeconds();
  try {
    const load = await loadOf(workload, task);
    const cpu = process.cpuSeconds() - cpuBefore;
    return {
      ...load,
      requestsPerSecond: load.requests / load.seconds,
      cpuMicrosecondsPerRequest: (cpu / load.requests) * MICROSECONDS_PER_SECOND,
      coreShare: cpu / load.seconds,
    };
  } catch (error) {
    throw new Error(`${name} failed at ${workload.title}`, { cause: error });
  }
}

function loadOf({ fixedRate, streams }: Workload, task: LoadTask): Promise<LoadResult> {
  if (streams !== undefined) return runStreams(task, streams);
  return fixedRate === undefined ? runWrk(task) : runAtRate(task, fixedRate);
}

/** Below this share of its fixed rate the generator measures its own queue. */
const RATE_TOLERANCE = 0.95;
/** Proxies that wait more than this for the other core all look alike. */
const IDLE_SHARE = 0.8;

function caveatOf({ fixedRate }: Workload, contenders: readonly ContenderResult[]): string {
  if (fixedRate !== undefined) {
    const slow = contenders.filter(({ requestsPerSecond }) => requestsPerSecond < fixedRate * RATE_TOLERANCE);
    if (slow.length === 0) return '';
    return `the rate was not reached with ${slow.map(({ name }) => name).join(', ')}: latencies include the generator's queue`;
  }
  if (contenders.every(({ coreShare }) => coreShare >= IDLE_SHARE)) return '';
  return 'generator and upstream were the limit at times: the ratio of processor time says more than that of requests';
}

function summary(name: string, turns: readonly Turn[]): ContenderResult {
  const of = (field: keyof Turn): number => median(turns.map((turn) => turn[field]));
  return {
    name,
    requestsPerSecond: of('requestsPerSecond'),
    cpuMicrosecondsPerRequest: of('cpuMicrosecondsPerRequest'),
    coreShare: of('coreShare'),
    p50Ms: of('p50Ms'),
    p99Ms: of('p99Ms'),
  };
}

function compare(workload: Workload, peer: string, own: readonly Turn[], other: readonly Turn[]): Comparison {
  const ratios = (field: keyof Turn): number[] => own.map((turn, round) => turn[field] / other[round]![field]);
  const isLatency = workload.fixedRate !== undefined;
  const compared = ratios(isLatency ? 'p99Ms' : 'requestsPerSecond').sort((a, b) => a - b);
  const bar = workload.bars[peer] ?? null;
  const value = median(compared);
  return {
    peer,
    rate: median(ratios('requestsPerSecond')),
    cpu: 1 / median(ratios('cpuMicrosecondsPerRequest')),
    p99: median(ratios('p99Ms')),
    spread: [compared[compared.length >> 2]!, compared[(compared.length * 3) >> 2]!],
    bar,
    passed: bar === null ? null : isLatency ? value <= bar : value >= bar,
  };
}
