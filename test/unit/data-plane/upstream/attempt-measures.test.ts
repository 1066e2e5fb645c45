// What is recorded of attempts, and for whom; test/integration/attempt-measures.test.ts has the figures of real ones.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AttemptMeasures } from '../../../../src/data-plane/upstream/attempt-measures.ts';
import { MESSAGE_SIZE_STATS, TIMEOUT_BUDGET_STATS } from '../../../../src/stats/index.ts';
import type { ResponseHead } from '../../../../src/wasm/http1.ts';
import { UpstreamWorkers } from '../../../support/upstream-workers.ts';

const HEAD = 'GET / HTTP/1.1\r\nhost: x\r\naccept: *\r\n\r\n';
const ANSWER = { headLength: 33, fieldCount: 4 } as ResponseHead;

interface Wanted {
  readonly tracksTimeoutBudgets: boolean;
  readonly tracksMessageSizes: boolean;
}

function bench(wanted: Wanted) {
  const workers = new UpstreamWorkers(1, () => {});
  const snapshot = workers.cluster(1, wanted);
  const context = workers.contexts[0]!;
  const recorded: [string, number][] = [];
  const { stats } = context;
  const names = new Map<number, string>();
  if (wanted.tracksTimeoutBudgets) note(snapshot.budgetBlock, TIMEOUT_BUDGET_STATS.index);
  if (wanted.tracksMessageSizes) note(snapshot.sizeBlock, MESSAGE_SIZE_STATS.index);
  stats.record = (index, value) => void recorded.push([names.get(index) ?? `cell ${index}`, value]);
  const measures = AttemptMeasures.of(context, snapshot);
  return { clock: workers.clock, measures, recorded };

  function note(block: number, index: Readonly<Record<string, number>>): void {
    for (const [name, stat] of Object.entries(index)) names.set(stats.base(block) + stat, name);
  }
}

test('a cluster that wants to know nothing has no measures', () => {
  assert.equal(bench({ tracksTimeoutBudgets: false, tracksMessageSizes: false }).measures, null);
});

for (const tracksTimeoutBudgets of [true, false]) {
  const [wanted, other] = tracksTimeoutBudgets ? ['times', 'sizes'] : ['sizes', 'times'];
  test(`a cluster that wants to know of ${wanted} is told nothing of ${other}`, () => {
    const { clock, measures, recorded } = bench({ tracksTimeoutBudgets, tracksMessageSizes: !tracksTimeoutBudgets });
    const meter = measures!.begin();
    meter.sendHead(HEAD, 5);
    meter.receiveHead(ANSWER);
    clock.turn(50);
    meter.end(200);
    measures!.recordBudget(50, 100);
    const expected = tracksTimeoutBudgets
      ? [
          ['upstream_rq_timeout_budget_per_try_percent_used', 25],
          ['upstream_rq_timeout_budget_percent_used', 50],
        ]
      : [
          ['upstream_rq_headers_size', HEAD.length],
          ['upstream_rq_headers_count', 2],
          ['upstream_rq_body_size', 5],
          ['upstream_rs_headers_size', 33],
          ['upstream_rs_headers_count', 4],
          ['upstream_rs_body_size', 0],
        ];
    assert.deepEqual(recorded, expected);
  });
}

describe('sizes are recorded', () => {
  const wanted = { tracksTimeoutBudgets: false, tracksMessageSizes: true };

  test('of no message when nothing was sent', () => {
    const { measures, recorded } = bench(wanted);
    measures!.begin().end(0);
    assert.deepEqual(recorded, []);
  });

  test('of the request alone when there was no answer', () => {
    const { measures, recorded } = bench(wanted);
    const meter = measures!.begin();
    meter.sendHead(HEAD, 0);
    meter.end(0);
    assert.deepEqual(
      recorded.map(([name]) => name),
      ['upstream_rq_headers_size', 'upstream_rq_headers_count', 'upstream_rq_body_size'],
    );
  });
});
