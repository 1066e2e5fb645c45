// Times one case on tinybench: cold first, then warm in rounds that alternate between subject and twin, so that a busy
// stretch of the machine hits both. Every figure is a median; the ratio is the median of the rounds' own ratios.

import { Bench } from 'tinybench';
import type { Clock } from '../base/clock.ts';
import type { BenchCase, Body } from './case.ts';

export interface Effort {
  /** Rounds of one case, 3 or more. */
  readonly rounds: number;
  /** Time for the subject, and again for the twin, in each round. */
  readonly roundMs: number;
}

export interface Measurement {
  /** Of one operation, warm. */
  readonly subjectNs: number;
  readonly twinNs: number;
  /** subjectNs / twinNs, by rounds: below 1 the core is the faster. */
  readonly ratio: number;
  /** Half of the distance between the quartiles of the rounds' ratios, as a share of the ratio: 0.02 is a calm machine. */
  readonly spread: number;
  /** The first operation of the case. What cases before it have in common with it is compiled already. */
  readonly coldNs: number;
}

/** One sample lasts this long: far above the clock's resolution, short enough for many samples in a round. */
const SAMPLE_MS = 0.1;
/** Warm enough for the optimising compilers: either so many operations or so much time. */
const WARM_OPERATIONS = 3_000_000;
const WARM_MS = 60;
const MIN_SAMPLES = 3;
const NS_PER_MS = 1e6;

export function measure(benchCase: BenchCase, effort: Effort, clock: Clock): Measurement {
  const { subject, twin, operationsEach = 1, close } = benchCase.open();
  try {
    const coldMs = timeOnce(subject, 1, clock);
    const timedSubject = { body: subject, times: warmUp(subject, clock) };
    const timedTwin = { body: twin, times: warmUp(twin, clock) };
    const subjectNs: number[] = [];
    const twinNs: number[] = [];
    const ratios: number[] = [];
    for (let round = 0; round < effort.rounds; round += 1) {
      const order = round % 2 === 0 ? [timedSubject, timedTwin] : [timedTwin, timedSubject];
      const [first, second] = order.map((timed) => nsPerTime(timed, effort.roundMs, clock)) as [number, number];
      const [ofSubject, ofTwin] = round % 2 === 0 ? [first, second] : [second, first];
      subjectNs.push(ofSubject / operationsEach);
      twinNs.push(ofTwin / operationsEach);
      ratios.push(ofSubject / ofTwin);
    }
    const ratio = quantile(ratios, 0.5);
    return {
      subjectNs: quantile(subjectNs, 0.5),
      twinNs: quantile(twinNs, 0.5),
      ratio,
      spread: (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2 / ratio,
      coldNs: (coldMs * NS_PER_MS) / operationsEach,
    };
  } finally {
    close?.();
  }
}

interface TimedBody {
  readonly body: Body;
  /** How often one sample does it. */
  readonly times: number;
}

/** Median of one round's samples. */
function nsPerTime({ body, times }: TimedBody, roundMs: number, clock: Clock): number {
  const now = (): number => clock.monotonicMs();
  const bench = new Bench({ time: roundMs, iterations: MIN_SAMPLES, warmup: false, throws: true, now });
  bench.add('body', () => body(times));
  const result = bench.runSync()[0]!.result;
  if (result.state !== 'completed') throw new Error(`a benchmark has ended as ${result.state}`);
  return (result.latency.p50 * NS_PER_MS) / times;
}

/** Warms the body up and finds how often it has to run for one sample. */
function warmUp(body: Body, clock: Clock): number {
  let times = 1;
  let done = 0;
  let spentMs = 0;
  for (;;) {
    const ms = timeOnce(body, times, clock);
    done += times;
    spentMs += ms;
    if (spentMs >= WARM_MS || (done >= WARM_OPERATIONS && ms >= SAMPLE_MS / 2)) {
      return Math.max(1, Math.round((times * SAMPLE_MS) / Math.max(ms, SAMPLE_MS / 100)));
    }
    if (ms < SAMPLE_MS) times *= 2;
  }
}

function timeOnce(body: Body, times: number, clock: Clock): number {
  const start = clock.monotonicMs();
  body(times);
  return clock.monotonicMs() - start;
}

/** The value at the share `q` of the sorted values, between two of them where it falls there. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * q;
  const below = sorted[Math.floor(place)]!;
  return below + (sorted[Math.ceil(place)]! - below) * (place % 1);
}
