// The command line of `npm run bench -- proxy`.

import path from 'node:path';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { coresOfContest } from '../support/cores.ts';
import { WORKLOADS } from './workloads.ts';

export interface BenchOptions {
  readonly rounds: number;
  /** Processes of each contender, one after the other, that share the rounds of a workload. */
  readonly starts: number;
  readonly seconds: number;
  /** Names of workloads, and `memory`, `h2-memory` and `scaling`. */
  readonly parts: readonly string[];
  /** Contenders that take part beside weir; all when empty. */
  readonly against: readonly string[];
  /** Another checkout of weir, built, that takes part as `weir-before`. */
  readonly before: string | undefined;
  readonly jsonFile: string;
  /** The file whose section between the markers is replaced. */
  readonly resultsFile: string | undefined;
  readonly proxyCores: string;
  readonly generatorCores: string;
}

export const PARTS = [...WORKLOADS.map(({ name }) => name), 'memory', 'h2-memory', 'scaling'];

export const USAGE = `npm run bench -- proxy [options]
  --rounds N          alternating rounds per workload (7)
  --starts N          processes of each contender that share them, one after the other (3)
  --seconds N         length of each contender's turn in a round (2)
  --only A,B          ${PARTS.join(', ')}
  --against A,B       nginx, haproxy, http-proxy-3, @fastify/http-proxy
  --before FOLDER     another built checkout of weir takes part as weir-before
  --json FILE         writes all figures there (build/bench-proxy.json)
  --results FILE      replaces the section there (bench/RESULTS.md with a full run, else none)
`;

/** @throws TypeError or RangeError for arguments that make no sense. */
export function parseOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '7' },
      starts: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '2' },
      only: { type: 'string' },
      against: { type: 'string' },
      before: { type: 'string' },
      json: { type: 'string' },
      results: { type: 'string' },
    },
  });
  const parts = values.only?.split(',') ?? PARTS;
  const unknown = parts.filter((part) => !PARTS.includes(part));
  if (unknown.length > 0) throw new RangeError(`no such workload: ${unknown.join(', ')}`);
  const isWhole = values.only === undefined && values.against === undefined;
  const [proxyCores, generatorCores] = coresOfContest();
  return {
    rounds: positive('rounds', values.rounds),
    starts: positive('starts', values.starts),
    seconds: positive('seconds', values.seconds),
    parts,
    against: values.against?.split(',') ?? [],
    before: values.before,
    jsonFile: values.json ?? path.join(PACKAGE_ROOT, 'build/bench-proxy.json'),
    resultsFile: values.results ?? (isWhole ? path.join(PACKAGE_ROOT, 'bench/RESULTS.md') : undefined),
    proxyCores,
    generatorCores,
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value <= 0) throw new RangeError(`--${name} takes a whole number above 0`);
  return value;
}
