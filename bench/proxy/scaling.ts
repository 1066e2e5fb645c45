// One worker on one core against two workers on two. On a machine of two cores the generator and the upstream have to
// share them with the workers, so what is reported is throughput per processor second as well: it says what a worker
// loses by having a neighbour, whoever else is on the core.

import os from 'node:os';
import { median } from '../support/contest.ts';
import { Arena } from './arena.ts';
import type { Contender } from './contender.ts';
import { runWrk } from './load.ts';
import type { BenchOptions } from './options.ts';
import type { Entrant } from './rounds.ts';

export interface ScalingResult {
  readonly name: string;
  readonly cores: number;
  readonly oneWorker: ScalingFigures;
  readonly twoWorkers: ScalingFigures;
}

export interface ScalingFigures {
  readonly requestsPerSecond: number;
  readonly requestsPerCpuSecond: number;
}

export async function measureScaling(
  contenders: readonly Contender[],
  options: BenchOptions,
): Promise<readonly ScalingResult[]> {
  const cores = os.availableParallelism();
  const all = `0-${cores - 1}`;
  // Enough cores: two for workers, the rest for the load. Otherwise everybody shares, in both runs alike.
  const [one, two, load] = cores >= 4 ? ['0', '0,1', `2-${cores - 1}`] : [all, all, all];
  const results: ScalingResult[] = [];
  for (const contender of contenders) {
    await using arena = new Arena();
    await arena.startUpstream(load);
    const single = await arena.enter(contender, 'http', one, 1);
    const double = await arena.enter(contender, 'http', two, 2);
    const turns: [ScalingFigures[], ScalingFigures[]] = [[], []];
    for (let round = 0; round < options.rounds; round += 1) {
      for (const [at, entrant] of [single, double].entries()) {
        turns[at]!.push(await takeTurn(entrant, arena.folder, load, options.seconds));
      }
    }
    results.push({ name: contender.name, cores, oneWorker: medians(turns[0]), twoWorkers: medians(turns[1]) });
  }
  return results;
}

async function takeTurn(entrant: Entrant, folder: string, cores: string, seconds: number): Promise<ScalingFigures> {
  const before = entrant.process.cpuSeconds();
  const url = `http://127.0.0.1:${entrant.port}/small`;
  const load = await runWrk({ cores, folder, url, connections: 64, seconds });
  return {
    requestsPerSecond: load.requests / load.seconds,
    requestsPerCpuSecond: load.requests / (entrant.process.cpuSeconds() - before),
  };
}

function medians(turns: readonly ScalingFigures[]): ScalingFigures {
  return {
    requestsPerSecond: median(turns.map((turn) => turn.requestsPerSecond)),
    requestsPerCpuSecond: median(turns.map((turn) => turn.requestsPerCpuSecond)),
  };
}
