// weir beside nginx, HAProxy and two proxies of its own platform: `npm run bench -- proxy`; see options.ts for the
// arguments. Ends with 1 when a contender failed; a missed bar is reported, not an error, because the machine may be
// shared.

import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { Arena } from './arena.ts';
import { type Contender, TRAITS } from './contender.ts';
import { haproxy } from './contenders/haproxy.ts';
import { nginx, nginxVersion } from './contenders/nginx.ts';
import { FASTIFY_HTTP_PROXY, HTTP_PROXY_3 } from './contenders/node-peers.ts';
import { weir } from './contenders/weir.ts';
import { programVersion } from './installed.ts';
import { measureHttp2Memory, measureMemory } from './memory.ts';
import { type BenchOptions, parseOptions, USAGE } from './options.ts';
import { type Report, renderReport, writeSection } from './report.ts';
import { type Entrant, judge, type Turn, takeRounds, type WorkloadResult } from './rounds.ts';
import { measureScaling } from './scaling.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

const WEIR_BEFORE = 'weir-before';

/** A generator that is missing takes its workloads with it. */
const GENERATORS = {
  wrk: programVersion('wrk', '-v', /wrk (?:debian\/)?(\S+)/),
  h2load: programVersion('h2load', '--version', /nghttp2\/(\S+)/),
};

function presentContenders(options: BenchOptions): Contender[] {
  const own = weir('weir', PACKAGE_ROOT);
  const ownBefore = options.before === undefined ? [] : [weir(WEIR_BEFORE, path.resolve(options.before))];
  const peers = [nginx, haproxy, HTTP_PROXY_3, FASTIFY_HTTP_PROXY].filter(
    ({ name }) => options.against.length === 0 || options.against.includes(name),
  );
  return [own, ...ownBefore, ...peers].filter((contender) => {
    const isPresent = contender.version() !== undefined;
    if (!isPresent) process.stdout.write(`${contender.name} is left out: ${contender.absence}\n`);
    return isPresent;
  });
}

async function runWorkloads(contenders: readonly Contender[], options: BenchOptions): Promise<WorkloadResult[]> {
  const results: WorkloadResult[] = [];
  for (const workload of WORKLOADS.filter(({ name }) => options.parts.includes(name)).filter(hasGenerator)) {
    const taking = contenders.filter(({ name }) => isOwn(name) || name in workload.bars);
    process.stdout.write(`${workload.title}: ${taking.map(({ name }) => name).join(', ')}\n`);
    const turns = taking.map((): Turn[] => []);
    // Fresh processes for every workload: none pays for what another one has left behind. And several of each, because two
    // processes of one program differ by up to a tenth, where their memory lies and how they were compiled, for as long as they run.
    for (const [start, rounds] of split(options.rounds, options.starts).entries()) {
      await using arena = new Arena();
      await arena.startUpstream(options.generatorCores, undefined, TRAITS[workload.protocol].upstream === 'https');
      const entrants: Entrant[] = [];
      // Who is started first may be better or worse off for all of it.
      const order = start % 2 === 0 ? [...taking.keys()] : [...taking.keys()].reverse();
      for (const at of order) {
        entrants[at] = await arena.enter(taking[at]!, workload.protocol, options.proxyCores);
      }
      const taken = await takeRounds(workload, entrants, { ...options, rounds, folder: arena.folder });
      for (const [at, more] of taken.entries()) turns[at]!.push(...more);
    }
    const names = taking.map(({ name }) => name);
    results.push(judge(workload, names, turns));
  }
  return results;
}

/** 7 by 3 is 3, 2, 2. */
function split(count: number, parts: number): number[] {
  return Array.from({ length: Math.min(count, parts) }, (_, at) => Math.floor((count + parts - 1 - at) / parts));
}

function isOwn(name: string): boolean {
  return name === 'weir' || name === WEIR_BEFORE;
}

function hasGenerator(workload: Workload): boolean {
  if (TRAITS[workload.protocol].upstream !== 'http' && nginxVersion() === undefined) {
    process.stdout.write(
      `${workload.title} is left out: nginx is not installed, and no other upstream speaks HTTP/2 or TLS\n`,
    );
    return false;
  }
  const generator = workload.fixedRate === undefined && workload.streams === undefined ? 'wrk' : 'h2load';
  if (GENERATORS[generator] !== undefined) return true;
  process.stdout.write(`${workload.title} is left out: ${generator} is not installed\n`);
  return false;
}

function takingPart(contenders: readonly Contender[], part: string, options: BenchOptions): Contender[] {
  if (!options.parts.includes(part)) return [];
  if (GENERATORS.wrk === undefined) {
    process.stdout.write(`${part} is left out: wrk is not installed\n`);
    return [];
  }
  process.stdout.write(`${part}\n`);
  return contenders.filter(({ name }) => isOwn(name) || name === 'nginx' || name === 'haproxy');
}

function versions(contenders: readonly Contender[]): Record<string, string> {
  const named = contenders.map((contender) => [contender.name, contender.version()!]);
  const generators = Object.entries(GENERATORS).filter(([, version]) => version !== undefined);
  return Object.fromEntries([['Node', process.versions.node], ...named, ...generators]) as Record<string, string>;
}

async function main(args: readonly string[]): Promise<void> {
  const options = parseOptions(args);
  const contenders = presentContenders(options);
  if (contenders[0]?.name !== 'weir') throw new Error('there is nothing to compare');
  const report: Report = {
    date: new Date().toISOString().slice(0, 10),
    command: ['npm run bench -- proxy', ...args].join(' '),
    machine: `${os.cpus()[0]?.model.trim() ?? 'unknown CPU'}, ${os.availableParallelism()} cores, ${os.type()} ${os.release()}`,
    versions: versions(contenders),
    rounds: options.rounds,
    starts: options.starts,
    seconds: options.seconds,
    workloads: await runWorkloads(contenders, options),
    memory: [
      ...(await measureMemory(takingPart(contenders, 'memory', options), options)),
      ...(await measureHttp2Memory(takingPart(contenders, 'h2-memory', options), options)),
    ],
    scaling: await measureScaling(takingPart(contenders, 'scaling', options), options),
  };
  const section = renderReport(report);
  process.stdout.write(`\n${section}\n`);
  writeFiles(report, section, options);
}

function writeFiles(report: Report, section: string, { jsonFile, resultsFile }: BenchOptions): void {
  mkdirSync(path.dirname(jsonFile), { recursive: true });
  writeFileSync(jsonFile, `${JSON.stringify(report, null, 2)}\n`);
  if (resultsFile !== undefined) writeSection(resultsFile, section);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  const isUsage = error instanceof TypeError || error instanceof RangeError;
  process.stderr.write(`${isUsage && error instanceof Error ? error.message : (error as Error).stack}\n`);
  if (error instanceof Error && error.cause !== undefined) process.stderr.write(`${String(error.cause)}\n`);
  if (isUsage) process.stderr.write(USAGE);
  process.exitCode = 1;
}
