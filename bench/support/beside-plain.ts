// What something costs: small requests through weir with it, beside weir without. In turns, on one core each.

import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { Arena } from '../proxy/arena.ts';
import { type WeirExtras, weir } from '../proxy/contenders/weir.ts';
import { programVersion } from '../proxy/installed.ts';
import { type Entrant, judge, type Turn, takeRounds } from '../proxy/rounds.ts';
import { WORKLOADS } from '../proxy/workloads.ts';
import { coresOfContest } from './cores.ts';

const PLAIN = 'plain';

/** What is added to a plain weir, and the least ratio of requests per second that it must reach; null for none. */
export interface Burden {
  readonly name: string;
  readonly extras: WeirExtras;
  readonly bar: number | null;
}

/** Reads `--rounds N` and `--seconds N`. @param title of what is left out where wrk is missing. */
export async function measureBesidePlain(title: string, burdens: readonly Burden[]): Promise<void> {
  if (programVersion('wrk', '-v', /wrk (?:debian\/)?(\S+)/) === undefined) {
    process.stdout.write(`${title} is left out: wrk is not installed\n`);
    return;
  }
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '9' }, seconds: { type: 'string', default: '2' } },
  });
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  const workload = WORKLOADS.find(({ name }) => name === 'small-get')!;
  process.stdout.write(`${workload.title}, ${rounds} rounds of ${seconds} s, each with processes of its own\n`);
  for (const burden of burdens) await compare(burden, rounds, seconds);
}

async function compare({ name, extras, bar }: Burden, rounds: number, seconds: number): Promise<void> {
  const [proxyCores, generatorCores] = coresOfContest();
  const workload = { ...WORKLOADS.find((known) => known.name === 'small-get')!, bars: { [PLAIN]: bar } };
  const contenders = [weir(name, PACKAGE_ROOT, extras), weir(PLAIN, PACKAGE_ROOT)];
  const turns = contenders.map((): Turn[] => []);
  // Two processes of one program differ by more than most of what is measured here, and who is started first by a little.
  for (let start = 0; start < rounds; start += 1) {
    await using arena = new Arena();
    await arena.startUpstream(generatorCores);
    const entrants: Entrant[] = [];
    for (const at of start % 2 === 0 ? [0, 1] : [1, 0]) {
      entrants[at] = await arena.enter(contenders[at]!, 'http', proxyCores);
    }
    const taken = await takeRounds(workload, entrants, { rounds: 1, seconds, generatorCores, folder: arena.folder });
    for (const [at, more] of taken.entries()) turns[at]!.push(...more);
  }
  const result = judge(workload, [name, PLAIN], turns);
  const [{ rate, cpu, p99, spread, passed }] = result.comparisons as [(typeof result.comparisons)[number]];
  const [low, high] = spread.map((ratio) => ratio.toFixed(3));
  const verdict = bar === null ? '' : `; bar ${bar}: ${passed ? 'reached' : 'MISSED'}`;
  process.stdout.write(
    `${name}: ${rate.toFixed(3)} of the requests of ${PLAIN} (quartiles ${low} to ${high}), ` +
      `processor time per request ${(1 / cpu).toFixed(3)}, p99 ${p99.toFixed(2)}${verdict}\n`,
  );
}
