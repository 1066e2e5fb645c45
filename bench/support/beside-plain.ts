// What something costs: small requests through weir with it, beside weir without, on one core. All run side by side and take turns of
// a second, so that whatever else the machine does meets each of them alike; and all are started anew some times, since two
// processes of one program differ by some percent.
//
// What decides is processor time of the proxy per request, plain over burdened. On a core that a proxy has to itself, and keeps
// busy, that is the ratio of requests per second; unlike that one it does not fall when somebody else wants the core, or when
// generator and upstream cannot keep up.

import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { Arena } from '../proxy/arena.ts';
import { type WeirExtras, weir } from '../proxy/contenders/weir.ts';
import { programVersion } from '../proxy/installed.ts';
import { type Entrant, type Turn, takeRounds } from '../proxy/rounds.ts';
import { WORKLOADS } from '../proxy/workloads.ts';
import { median } from './contest.ts';
import { coresOfContest } from './cores.ts';

const PLAIN = 'plain';
/** The first turns of a process are still of code that is not compiled for good. */
const UNCOUNTED_TURNS = 1;

/** What is added to a plain weir, and the least share of its requests that it must reach; null for none. */
export interface Burden {
  readonly name: string;
  readonly extras: WeirExtras;
  readonly bar: number | null;
}

interface Options {
  readonly starts: number;
  readonly turns: number;
  readonly seconds: number;
}

/** Plain over burdened for processor time, burdened over plain for requests per second: 1 where it costs nothing. */
interface Ratios {
  readonly cpu: number;
  readonly rate: number;
}

/** Reads `--starts N`, `--turns N` and `--seconds N`. @param title of what is left out where wrk is missing. */
export async function measureBesidePlain(title: string, burdens: readonly Burden[]): Promise<void> {
  if (programVersion('wrk', '-v', /wrk (?:debian\/)?(\S+)/) === undefined) {
    process.stdout.write(`${title} is left out: wrk is not installed\n`);
    return;
  }
  const { values } = parseArgs({
    options: {
      starts: { type: 'string', default: '5' },
      turns: { type: 'string', default: '6' },
      seconds: { type: 'string', default: '1' },
    },
  });
  const options = { starts: Number(values.starts), turns: Number(values.turns), seconds: Number(values.seconds) };
  const { starts, turns, seconds } = options;
  process.stdout.write(`${workload().title}: ${starts} starts, each with ${turns} turns of ${seconds} s\n`);
  const ratios = burdens.map((): Ratios[] => []);
  for (let start = 0; start < starts; start += 1) {
    for (const [at, more] of (await compareOnce(burdens, options, start)).entries()) ratios[at]!.push(more);
  }
  for (const [at, burden] of burdens.entries()) report(burden, ratios[at]!);
}

function workload(): (typeof WORKLOADS)[number] {
  return WORKLOADS.find(({ name }) => name === 'small-get')!;
}

/** One process of each. @param start who begins is another each time. */
async function compareOnce(burdens: readonly Burden[], { turns, seconds }: Options, start: number): Promise<Ratios[]> {
  const [proxyCores, generatorCores] = coresOfContest();
  const contenders = [
    weir(PLAIN, PACKAGE_ROOT),
    ...burdens.map(({ name, extras }) => weir(name, PACKAGE_ROOT, extras)),
  ];
  await using arena = new Arena();
  await arena.startUpstream(generatorCores);
  const order = contenders.map((_, at) => (at + start) % contenders.length);
  const entrants: Entrant[] = [];
  for (const at of order) entrants.push(await arena.enter(contenders[at]!, 'http', proxyCores));
  const taken = await takeRounds(workload(), entrants, {
    rounds: turns + UNCOUNTED_TURNS,
    seconds,
    generatorCores,
    folder: arena.folder,
  });
  const turnsOf = (index: number): readonly Turn[] => taken[order.indexOf(index)]!.slice(UNCOUNTED_TURNS);
  // Caches that somebody else has filled make processor time, too: the turns count that are disturbed least.
  const cpuOf = (index: number): number => quarter(turnsOf(index).map((turn) => turn.cpuMicrosecondsPerRequest));
  const rateOf = (index: number): number => median(turnsOf(index).map((turn) => turn.requestsPerSecond));
  return burdens.map((_, at) => ({ cpu: cpuOf(0) / cpuOf(at + 1), rate: rateOf(at + 1) / rateOf(0) }));
}

/** The lower quartile. */
function quarter(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 2]!;
}

function report({ name, bar }: Burden, ratios: readonly Ratios[]): void {
  const cpu = told(ratios.map((ratio) => ratio.cpu));
  const rate = told(ratios.map((ratio) => ratio.rate));
  const passed = median(ratios.map((ratio) => ratio.cpu)) >= (bar ?? 0);
  const verdict = bar === null ? '' : `; bar ${bar}: ${passed ? 'reached' : 'MISSED'}`;
  process.stdout.write(
    `${name}: ${cpu} of the requests of ${PLAIN} for the same processor time${verdict}; ${rate} by the clock\n`,
  );
}

/** The median with the least and the most. */
function told(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(3));
  return `${median(values).toFixed(3)} (${least} to ${most})`;
}
