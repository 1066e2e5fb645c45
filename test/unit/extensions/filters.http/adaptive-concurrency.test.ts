// How a limit of requests follows their latencies: the controller beside one that is written down as its description has it,
// by a clock that is turned by hand.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { GradientState, makeGradientState } from '../../../../src/base/gradient-state.ts';
import { LATENCY_COUNTS_BYTES, LatencyCounts } from '../../../../src/base/latency-counts.ts';
import {
  GradientController,
  type GradientParameters,
} from '../../../../src/extensions/filters.http/adaptive_concurrency/gradient-controller.ts';

const PARAMETERS: GradientParameters = {
  updateIntervalMs: 100,
  maxLimit: 1000,
  minLimit: 3,
  measuringLimit: 3,
  measureIntervalMs: 60_000,
  fixedLatencyMs: 0,
  measuredRequests: 5,
  jitter: 0,
  buffer: 0.25,
  quantile: 0.5,
};

interface Gauges {
  measuring: boolean;
  limit: number;
  gradient: number;
  headroom: number;
  minLatencyMs: number;
  latencyMs: number;
}

/** Some workers that share a limit. */
class Workers {
  readonly gauges: Gauges = { measuring: false, limit: 0, gradient: 0, headroom: 0, minLatencyMs: 0, latencyMs: 0 };
  parameters: GradientParameters;
  drawn = 0;
  nowMs = 1000;
  readonly #memory = makeGradientState();
  readonly #controllers: GradientController[] = [];
  #next = 0;

  constructor(parameters: Partial<GradientParameters> = {}, count = 1) {
    this.parameters = { ...PARAMETERS, ...parameters };
    for (let index = 0; index < count; index += 1) this.join();
  }

  join(): void {
    const { gauges } = this;
    const told = Object.fromEntries(
      Object.keys(gauges).map((name) => [name, (value: never) => (gauges[name as keyof Gauges] = value)]),
    );
    const state = new GradientState(this.#memory);
    const draw = (): number => this.drawn;
    this.#controllers.push(new GradientController(state, () => this.parameters, told as never, draw, this.nowMs));
  }

  /** One after the other. */
  get #one(): GradientController {
    this.#next = (this.#next + 1) % this.#controllers.length;
    return this.#controllers[this.#next]!;
  }

  get limit(): number {
    return this.#one.limitAt(this.nowMs);
  }

  answers(count: number, latencyMs: number): void {
    for (let done = 0; done < count; done += 1) this.#one.sample(this.nowMs - latencyMs, this.nowMs);
  }

  /** A request after the other, each of which takes so long. */
  runs(count: number, latencyMs: number): void {
    for (let done = 0; done < count; done += 1) {
      const startedMs = this.nowMs;
      void this.limit;
      this.nowMs += latencyMs;
      this.#one.sample(startedMs, this.nowMs);
    }
  }
}

const near = (actual: number, expected: number, message?: string): void =>
  assert.ok(Math.abs(actual - expected) <= 0.04 * expected + 1, `${message ?? ''} ${actual}, not ${expected}`);

describe('a limit that follows latencies', () => {
  it('is the least one while latency is measured, and stands as it was behind that', () => {
    const workers = new Workers({ measuringLimit: 7, minLimit: 7 });
    assert.deepEqual([workers.limit, workers.gauges.measuring], [7, true]);
    workers.runs(4, 10);
    assert.equal(workers.gauges.measuring, true);
    workers.runs(1, 10);
    assert.deepEqual([workers.gauges.measuring, workers.limit], [false, 7]);
    near(workers.gauges.minLatencyMs, 10);
  });

  it('grows while answers are quick, by the root of it, and shrinks when they are slow', () => {
    const workers = new Workers();
    workers.runs(5, 10);
    workers.runs(5, 10);
    // 12.5 / 10 of 3, and the root of that.
    workers.nowMs += 100;
    assert.equal(workers.limit, Math.floor(3.75 + Math.sqrt(3.75)));
    near(workers.gauges.gradient, 1.25);
    assert.equal(workers.gauges.headroom, 1);
    for (let rounds = 0; rounds < 12; rounds += 1) {
      workers.runs(10, 10);
      workers.nowMs += 100;
    }
    const grown = workers.limit;
    assert.ok(grown > 100, `${grown}`);
    workers.runs(10, 100);
    workers.nowMs += 100;
    const scaled = workers.gauges.limit * 0.5;
    assert.equal(workers.limit, Math.floor(scaled + Math.sqrt(scaled)), 'to a half at most');
    near(workers.gauges.latencyMs, 100);
    assert.equal(workers.gauges.gradient, 0.5);
  });

  it('stays within its bounds', () => {
    const workers = new Workers({ maxLimit: 20 });
    workers.runs(5, 10);
    for (let rounds = 0; rounds < 30; rounds += 1) workers.runs(10, 10);
    assert.equal(workers.limit, 20);
    workers.parameters = { ...workers.parameters, minLimit: 9 };
    for (let rounds = 0; rounds < 5; rounds += 1) workers.runs(1, 1000);
    assert.equal(workers.limit, 9);
  });

  it('is measured anew after an interval and what chance adds to it', () => {
    const workers = new Workers({ jitter: 0.5 });
    workers.drawn = 2 ** 31 + 10_000;
    workers.runs(5, 10);
    const dueMs = workers.nowMs + 60_000 + (workers.drawn % 30_000);
    workers.runs(10, 10);
    workers.nowMs = dueMs - 1;
    const limit = workers.limit;
    assert.ok(limit > 3);
    assert.equal(workers.gauges.measuring, false);
    workers.nowMs = dueMs;
    assert.deepEqual([workers.limit, workers.gauges.measuring], [3, true]);
    workers.answers(20, 50);
    assert.equal(workers.gauges.measuring, true, 'what began before says nothing');
    workers.runs(5, 20);
    assert.deepEqual([workers.gauges.measuring, workers.limit], [false, limit]);
    near(workers.gauges.minLatencyMs, 20);
  });

  it('is measured anew when five updates in a row have found the least one', () => {
    const workers = new Workers();
    workers.runs(5, 10);
    for (let updates = 0; updates < 4; updates += 1) {
      workers.runs(1, 500);
      workers.nowMs += 100;
      void workers.limit;
    }
    assert.equal(workers.gauges.measuring, false);
    workers.runs(1, 500);
    workers.nowMs += 100;
    void workers.limit;
    assert.equal(workers.gauges.measuring, true);
    workers.runs(5, 500);
    near(workers.gauges.minLatencyMs, 500);
    for (let updates = 0; updates < 4; updates += 1) {
      workers.runs(1, 5000);
      workers.nowMs += 100;
      void workers.limit;
    }
    assert.equal(workers.gauges.measuring, false, 'they are counted from the measurement on');
  });

  it('is not in doubt by the update that has found the least one first', () => {
    const workers = new Workers({ measuringLimit: null, minLimit: 3 });
    workers.runs(5, 10);
    workers.runs(11, 10);
    assert.ok(workers.limit > 3);
    let updates = 0;
    while (workers.limit > 3) {
      workers.runs(1, 500);
      workers.nowMs += 100;
    }
    while (!workers.gauges.measuring) {
      workers.runs(1, 500);
      workers.nowMs += 100;
      void workers.limit;
      updates += 1;
    }
    assert.equal(updates, 5);
  });

  it('goes on when another worker takes part', () => {
    const workers = new Workers();
    workers.runs(5, 10);
    workers.runs(11, 10);
    const { limit } = workers;
    workers.join();
    assert.deepEqual([workers.limit, workers.limit, workers.gauges.measuring], [limit, limit, false]);
    assert.ok(limit > 3);
  });

  it('is measured by what comes behind, and before an update that is due later', () => {
    const workers = new Workers({ updateIntervalMs: 5000, measureIntervalMs: 1000 });
    workers.runs(5, 10);
    workers.runs(4, 10);
    workers.nowMs += 10_000;
    void workers.limit;
    assert.deepEqual([workers.gauges.measuring, workers.gauges.latencyMs], [true, 0]);
    workers.runs(4, 50);
    assert.equal(workers.gauges.measuring, true);
    workers.runs(1, 50);
    near(workers.gauges.minLatencyMs, 50);
  });

  it('can have the latency given', () => {
    const workers = new Workers({ measureIntervalMs: null, fixedLatencyMs: 40 });
    assert.deepEqual([workers.limit, workers.gauges.measuring, workers.gauges.minLatencyMs], [3, false, 40]);
    workers.runs(10, 10);
    assert.equal(workers.gauges.gradient, 2);
    for (let rounds = 0; rounds < 20; rounds += 1) workers.runs(1, 5000);
    assert.deepEqual([workers.limit, workers.gauges.measuring], [3, false]);
  });

  it('can go on while latency is measured', () => {
    const workers = new Workers({ measuringLimit: null, minLimit: 25 });
    assert.equal(workers.limit, 25);
    workers.runs(5, 10);
    workers.runs(20, 10);
    const grown = workers.limit;
    assert.ok(grown > 25);
    workers.nowMs += 60_000;
    assert.deepEqual([workers.limit >= grown, workers.gauges.measuring], [true, true]);
  });

  it('is the one that its description has, whatever comes, in any number of workers', () => {
    const latencyMs = fc.oneof(fc.nat(5), fc.nat(400));
    const step = fc.record({ waitMs: fc.nat(300), count: fc.integer({ min: 1, max: 8 }), latencyMs });
    const parameters = fc.record({
      updateIntervalMs: fc.constantFrom(50, 100, 3000),
      measureIntervalMs: fc.constantFrom(500, 2000),
      maxLimit: fc.constantFrom(5, 1000),
    });
    fc.assert(
      fc.property(
        parameters,
        fc.array(step, { maxLength: 80 }),
        fc.integer({ min: 1, max: 3 }),
        (own, steps, count) => {
          const workers = new Workers(own, count);
          const model = new Described(workers.parameters, workers.nowMs);
          for (const { waitMs, count: answers, latencyMs } of steps) {
            workers.nowMs += waitMs;
            assert.equal(workers.limit, model.limitAt(workers.nowMs));
            for (let each = 0; each < answers; each += 1) {
              workers.answers(1, latencyMs);
              model.sample(workers.nowMs - latencyMs, workers.nowMs);
            }
            assert.equal(workers.gauges.measuring, model.isMeasuring);
            assert.equal(workers.gauges.limit, model.limit);
          }
        },
      ),
    );
  });
});

/** One worker, with a list for each thing; latencies as the counts read them. */
class Described {
  limit: number;
  isMeasuring = true;
  readonly #parameters: GradientParameters;
  #former: number;
  #samples: number[] = [];
  #sinceMs: number;
  #minUs = 0;
  #updateMs = 0;
  #measureMs = 0;
  #leastInARow = 0;

  constructor(parameters: GradientParameters, nowMs: number) {
    this.#parameters = parameters;
    this.limit = parameters.measuringLimit!;
    this.#former = this.limit;
    this.#sinceMs = nowMs;
  }

  limitAt(nowMs: number): number {
    if (!this.isMeasuring && nowMs >= this.#updateMs && this.#updateMs <= this.#measureMs) this.#update(nowMs);
    if (!this.isMeasuring && nowMs >= this.#measureMs) {
      this.isMeasuring = true;
      this.#former = this.limit;
      this.limit = this.#parameters.measuringLimit!;
      this.#samples = [];
      this.#sinceMs = nowMs;
    }
    return this.limit;
  }

  sample(startedMs: number, nowMs: number): void {
    this.limitAt(nowMs);
    if (startedMs < this.#sinceMs) return;
    this.#samples.push((nowMs - startedMs) * 1000);
    if (!this.isMeasuring || this.#samples.length < this.#parameters.measuredRequests) return;
    this.#minUs = this.#take();
    this.limit = this.#former;
    this.isMeasuring = false;
    this.#updateMs = nowMs + this.#parameters.updateIntervalMs;
    this.#measureMs = nowMs + this.#parameters.measureIntervalMs!;
  }

  #update(nowMs: number): void {
    const { minLimit, maxLimit, buffer, updateIntervalMs } = this.#parameters;
    this.#updateMs = nowMs + updateIntervalMs;
    if (this.#samples.length === 0) return;
    const raw = (this.#minUs * (1 + buffer)) / this.#take();
    const scaled = this.limit * (Number.isNaN(raw) ? 1 : Math.min(2, Math.max(0.5, raw)));
    const next = Math.max(minLimit, Math.min(maxLimit, Math.floor(scaled + Math.sqrt(scaled))));
    this.#leastInARow = next === minLimit && this.limit === minLimit ? this.#leastInARow + 1 : 0;
    this.limit = next;
    if (this.#leastInARow < 5) return;
    this.#leastInARow = 0;
    this.#measureMs = nowMs;
  }

  #take(): number {
    const counts = new LatencyCounts(new ArrayBuffer(LATENCY_COUNTS_BYTES), 0);
    for (const us of this.#samples) counts.add(us);
    this.#samples = [];
    return counts.quantile(this.#parameters.quantile)!;
  }
}
