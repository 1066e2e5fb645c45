// What it costs a route that nothing goes wrong on to be ready for it: small requests through weir with health checks,
// outlier detection and circuit breakers, and with a retry policy, beside weir without. In turns, on one core each.
// Bar: 0.97 of the requests without.
// `npm run bench -- resilience --rounds 9 --seconds 2`

import os from 'node:os';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../src/base/package-root.ts';
import { Arena } from './proxy/arena.ts';
import { type WeirExtras, weir } from './proxy/contenders/weir.ts';
import { programVersion } from './proxy/installed.ts';
import type { Entrant } from './proxy/rounds.ts';
import { runWorkload } from './proxy/rounds.ts';
import { WORKLOADS } from './proxy/workloads.ts';

const PLAIN = 'plain';
const BAR = 0.97;

const EXTRAS: Readonly<Record<string, WeirExtras>> = {
  guarded: {
    cluster: () => ({
      health_checks: [
        {
          timeout: '1s',
          interval: '1s',
          unhealthy_threshold: 2,
          healthy_threshold: 2,
          http_health_check: { path: '/small' },
        },
      ],
      outlier_detection: { interval: '1s' },
      circuit_breakers: {
        thresholds: [{ max_connections: 1000, max_requests: 1000, max_retries: 10, track_remaining: true }],
      },
    }),
  },
  retrying: {
    route: { retry_policy: { retry_on: '5xx,connect-failure,reset', num_retries: 3, per_try_timeout: '5s' } },
  },
};

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '9' }, seconds: { type: 'string', default: '2' } },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const [proxyCores, generatorCores] = os.availableParallelism() > 1 ? ['0', '1'] : ['0', '0'];
const workload = { ...WORKLOADS.find(({ name }) => name === 'small-get')!, bars: { [PLAIN]: BAR } };

async function compare(name: string, extras: WeirExtras): Promise<void> {
  await using arena = new Arena();
  await arena.startUpstream(generatorCores);
  const entrants: Entrant[] = [];
  for (const contender of [weir(name, PACKAGE_ROOT, extras), weir(PLAIN, PACKAGE_ROOT)]) {
    entrants.push(await arena.enter(contender, 'http', proxyCores));
  }
  const result = await runWorkload(workload, entrants, { rounds, seconds, generatorCores, folder: arena.folder });
  const [{ rate, cpu, p99, spread, passed }] = result.comparisons as [(typeof result.comparisons)[number]];
  const [low, high] = spread.map((ratio) => ratio.toFixed(3));
  process.stdout.write(
    `${name}: ${rate.toFixed(3)} of the requests of ${PLAIN} (quartiles ${low} to ${high}), ` +
      `processor time per request ${(1 / cpu).toFixed(3)}, p99 ${p99.toFixed(2)}; bar ${BAR}: ${passed ? 'reached' : 'MISSED'}\n`,
  );
}

if (programVersion('wrk', '-v', /wrk (?:debian\/)?(\S+)/) === undefined) {
  process.stdout.write('resilience is left out: wrk is not installed\n');
} else {
  process.stdout.write(`${workload.title}, ${rounds} alternating rounds of ${seconds} s\n`);
  for (const [name, extras] of Object.entries(EXTRAS)) await compare(name, extras);
}
