// What workers note of one host, over real shared memory: rows of failures that span two workers, and what each adds to the
// totals.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { OutlierMonitor, OutlierRules } from '../../../../src/data-plane/upstream/outlier-monitor.ts';
import type { WorkerContext } from '../../../../src/data-plane/worker-context.ts';
import type { ConsecutiveKind } from '../../../../src/snapshot/index.ts';
import { OUTLIER_HOST_STATS } from '../../../../src/stats/index.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
import { outlierSettings } from '../../../support/outliers.ts';
import { statsFixture } from '../../../support/stats.ts';

class Watching {
  readonly runtime = new RuntimeValues();
  readonly reports: ConsecutiveKind[] = [];
  readonly monitors: readonly OutlierMonitor[];
  readonly #fixture = statsFixture({ workerCount: 2 });
  readonly #block = this.#fixture.store.unnamedBlock(
    OUTLIER_HOST_STATS,
    this.#fixture.store.allocateUnnamed(OUTLIER_HOST_STATS),
  );

  constructor(fields: JsonObject = {}) {
    const record = this.#fixture.owner.recordAllocator.allocateHost(1);
    this.monitors = this.#fixture.workers.map(({ stats, memory }) => {
      const context = {
        stats,
        records: memory.records,
        runtime: this.runtime,
        reportOutlier: (cluster: string, recordAddress: number, kind: ConsecutiveKind) => {
          assert.deepEqual([cluster, recordAddress], ['web', record]);
          this.reports.push(kind);
        },
      } as unknown as WorkerContext;
      return new OutlierMonitor(
        context,
        new OutlierRules(context, outlierSettings(fields)),
        'web',
        record,
        this.#block.cell,
      );
    });
  }

  /** Answers of the host, to each of the workers in turn. */
  answers(...statuses: number[]): void {
    for (const [index, status] of statuses.entries()) this.monitors[index % 2]!.answered(status);
  }

  /** Total and successes: of answers, of connections. */
  get volumes(): number[] {
    const names = ['external_total', 'external_success', 'local_total', 'local_success'] as const;
    return names.map((name) => this.#block.value(name));
  }
}

const FIVE = [500, 500, 500, 500, 500];

describe('answers', () => {
  it('of 5xx in a row are told of once, whichever workers get them', () => {
    const watching = new Watching();
    watching.answers(500, 501, 500, 599);
    assert.deepEqual(watching.reports, []);
    watching.answers(500);
    assert.deepEqual(watching.reports, ['consecutive-5xx']);
    watching.answers(500, 500);
    assert.deepEqual(watching.reports, ['consecutive-5xx']);
    assert.deepEqual(watching.volumes, [7, 0, 0, 0]);
  });

  it('of any other kind end the row, in every worker', () => {
    for (const good of [101, 200, 404, 499, 600]) {
      const watching = new Watching();
      watching.answers(500, 500, 500, 500, good, 500, 500, 500, 500);
      assert.deepEqual(watching.reports, [], `${good}`);
      watching.answers(500);
      assert.deepEqual(watching.reports, ['consecutive-5xx']);
      assert.deepEqual(watching.volumes, [10, 1, 0, 0]);
    }
  });

  it('of gateways are a row of their own, which all others end', () => {
    const limits = { consecutive_gateway_failure: 3, consecutive_5xx: 100 };
    for (const other of [200, 404, 500, 501, 505, 599]) {
      const watching = new Watching(limits);
      watching.answers(502, 503, other, 504, 502);
      assert.deepEqual(watching.reports, [], `${other}`);
      watching.answers(503);
      assert.deepEqual(watching.reports, ['consecutive-gateway-failure']);
    }
    const both = new Watching({ consecutive_gateway_failure: 2, consecutive_5xx: 2 });
    both.answers(503, 503);
    assert.deepEqual(both.reports, ['consecutive-gateway-failure', 'consecutive-5xx']);
  });

  it('are never too many for a limit of 0', () => {
    const watching = new Watching({ consecutive_5xx: 0 });
    watching.answers(...FIVE, ...FIVE);
    assert.deepEqual(watching.reports, []);
  });

  it('are as many as the runtime says', () => {
    const watching = new Watching();
    watching.runtime.replace(new Map([['outlier_detection.consecutive_5xx', '2']]));
    watching.answers(500, 500);
    assert.deepEqual(watching.reports, ['consecutive-5xx']);
  });
});

describe('connections that fail', () => {
  it('count as answers of 503 and 504', () => {
    const watching = new Watching({ consecutive_gateway_failure: 2 });
    watching.monitors[0]!.failed();
    watching.monitors[1]!.timedOut();
    assert.deepEqual(watching.reports, ['consecutive-gateway-failure']);
    assert.deepEqual(watching.volumes, [2, 0, 0, 0]);
  });

  it('are a row of their own where the two are told apart, which a connection ends', () => {
    const watching = new Watching({ split_external_local_origin_errors: true, consecutive_local_origin_failure: 3 });
    const [first, second] = watching.monitors as [OutlierMonitor, OutlierMonitor];
    first.failed();
    second.timedOut();
    first.connected();
    first.failed();
    second.failed();
    assert.deepEqual(watching.reports, []);
    watching.answers(200);
    second.timedOut();
    assert.deepEqual(watching.reports, ['consecutive-local-origin-failure']);
    assert.deepEqual(watching.volumes, [1, 1, 6, 1]);
  });
});

describe('a connection', () => {
  it('says nothing where answers say everything', () => {
    const watching = new Watching();
    watching.answers(500, 500, 500, 500);
    watching.monitors[0]!.connected();
    watching.answers(500);
    assert.deepEqual(watching.reports, ['consecutive-5xx']);
    assert.deepEqual(watching.volumes, [5, 0, 0, 0]);
  });

  it('on which nothing can be judged is a success, once', () => {
    const joined = new Watching();
    joined.answers(500, 500, 500, 500);
    joined.monitors[1]!.connected();
    joined.monitors[1]!.served();
    joined.answers(500);
    assert.deepEqual(joined.reports, []);
    assert.deepEqual(joined.volumes, [6, 1, 0, 0]);
    const apart = new Watching({ split_external_local_origin_errors: true });
    apart.monitors[0]!.connected();
    apart.monitors[0]!.served();
    assert.deepEqual(apart.volumes, [0, 0, 1, 1]);
  });
});
