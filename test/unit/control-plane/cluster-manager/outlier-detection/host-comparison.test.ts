// Hosts compared with one another once an interval, and what becomes of those that stand out.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Watched } from '../../../../support/watched-cluster.ts';

/** Average and threshold, of requests and of connections. */
function ratesOfAll({ cluster }: Watched): number[] {
  const rates = cluster.outlier!;
  return [
    rates.successRateAverage,
    rates.successRateEjectionThreshold,
    rates.localOriginSuccessRateAverage,
    rates.localOriginSuccessRateEjectionThreshold,
  ];
}

describe('the success rate', () => {
  it('puts hosts out of service that are far below the others', () => {
    using watched = new Watched({ hosts: 5 });
    assert.deepEqual(ratesOfAll(watched), [-1, -1, -1, -1]);
    // Average 90, standard deviation 20: the threshold is 90 - 1.9 * 20 = 52.
    watched.rates(100, 100, 100, 100, 50);
    watched.interval();
    assert.deepEqual(watched.ejected, [4]);
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [100, 100, 100, 100, 50],
    );
    assert.deepEqual(ratesOfAll(watched), [90, 52, -1, -1]);
    assert.deepEqual(
      [watched.stat('ejections_detected_success_rate'), watched.stat('ejections_enforced_success_rate')],
      [1, 1],
    );
    assert.deepEqual(
      [watched.hosts[4]!.lastEjection!.kind, watched.hosts[4]!.lastEjection!.successRate],
      ['success-rate', 50],
    );
    watched.interval();
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [-1, -1, -1, -1, -1],
    );
    assert.deepEqual(ratesOfAll(watched), [-1, -1, -1, -1]);
  });

  it('is that of one interval, not of all time', () => {
    using watched = new Watched({ hosts: 5 });
    watched.rates(100, 100, 100, 100, 90);
    watched.interval();
    assert.deepEqual(watched.ejected, [4]);
    watched.interval(3);
    watched.rates(99, 99, 99, 99, 99);
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.cluster.outlier!.successRateAverage, 99);
  });

  it('compares nobody without enough hosts that have had enough requests', () => {
    using watched = new Watched({ hosts: 6 });
    for (let index = 0; index < 4; index += 1) watched.requests(index, 100, 100);
    watched.requests(4, 99, 0);
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.cluster.outlier!.successRateAverage, -1);
    assert.equal(watched.cluster.outlier!.successRateEjectionThreshold, -1);
    // Enough of them for the percentage of failures, so the rate is shown.
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [100, 100, 100, 100, 0, -1],
    );
  });

  it('is shown of no host where they are too few to be compared', () => {
    using watched = new Watched({ hosts: 4 });
    watched.rates(100, 100, 100, 50);
    watched.interval();
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [-1, -1, -1, -1],
    );
  });

  it('is none of a host without requests, nor of all together, whatever is enough', () => {
    const detection = {
      success_rate_minimum_hosts: 0,
      success_rate_request_volume: 0,
      failure_percentage_minimum_hosts: 0,
      failure_percentage_request_volume: 0,
      enforcing_failure_percentage: 100,
    };
    using watched = new Watched({ hosts: 3, detection });
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.cluster.outlier!.successRateAverage, -1);
    watched.requests(0, 1, 1);
    watched.interval();
    assert.equal(watched.cluster.outlier!.successRateAverage, 100);
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [100, -1, -1],
    );
  });

  it('leaves hosts out that are out of service', () => {
    using watched = new Watched({ hosts: 6 });
    watched.row(5);
    watched.rates(100, 100, 100, 100, 90, 0);
    watched.interval();
    assert.equal(watched.cluster.outlier!.successRateAverage, 98);
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [100, 100, 100, 100, 90, -1],
    );
    assert.deepEqual(watched.ejected, [4, 5]);
  });

  it('of connections is a comparison of its own', () => {
    using watched = new Watched({ hosts: 5, detection: { split_external_local_origin_errors: true } });
    for (const [index, rate] of [100, 100, 100, 100, 50].entries()) watched.requests(index, 100, rate, 'local');
    watched.interval();
    assert.deepEqual(watched.ejected, [4]);
    assert.deepEqual(
      watched.hosts.map(({ successRate, localOriginSuccessRate }) => [successRate, localOriginSuccessRate]),
      [100, 100, 100, 100, 50].map((rate) => [-1, rate]),
    );
    assert.equal(watched.stat('ejections_enforced_local_origin_success_rate'), 1);
    assert.equal(watched.stat('ejections_detected_success_rate'), 0);
    assert.deepEqual(ratesOfAll(watched), [-1, -1, 90, 52]);
  });
});

describe('the percentage of failures', () => {
  it('puts hosts out of service from its threshold on', () => {
    using watched = new Watched({
      hosts: 5,
      detection: { enforcing_failure_percentage: 100, enforcing_success_rate: 0, failure_percentage_threshold: 40 },
    });
    watched.rates(100, 61, 60, 0, 100);
    watched.interval();
    assert.deepEqual(watched.ejected, [2, 3]);
    assert.equal(watched.stat('ejections_detected_failure_percentage'), 2);
    assert.equal(watched.stat('ejections_enforced_failure_percentage'), 2);
  });

  it('only counts by default', () => {
    using watched = new Watched({ hosts: 5, detection: { enforcing_success_rate: 0 } });
    const told = watched.published.length;
    watched.rates(100, 100, 100, 100, 0);
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.published.length, told);
    assert.equal(watched.stat('ejections_detected_failure_percentage'), 1);
    assert.equal(watched.stat('ejections_detected_success_rate'), 1);
  });

  it('is judged of nobody without enough hosts that have had enough requests', () => {
    const detection = { enforcing_failure_percentage: 100, enforcing_success_rate: 0 };
    using watched = new Watched({ hosts: 5, detection });
    for (let index = 0; index < 4; index += 1) watched.requests(index, 100, 0);
    watched.interval();
    assert.deepEqual([watched.ejected, watched.stat('ejections_detected_failure_percentage')], [[], 0]);
  });

  it('of connections is judged apart, with fewer hosts and requests when asked to', () => {
    using watched = new Watched({
      hosts: 2,
      detection: {
        enforcing_failure_percentage_local_origin: 100,
        failure_percentage_minimum_hosts: 1,
        failure_percentage_request_volume: 3,
      },
    });
    watched.requests(0, 3, 0, 'local');
    watched.requests(1, 2, 0, 'local');
    watched.interval();
    assert.deepEqual(watched.ejected, [0]);
    assert.equal(watched.stat('ejections_enforced_local_origin_failure_percentage'), 1);
  });

  it('does not eject a host a second time that its success rate has ejected', () => {
    using watched = new Watched({ hosts: 5, detection: { enforcing_failure_percentage: 100 } });
    watched.rates(100, 100, 100, 100, 0);
    watched.interval();
    assert.deepEqual(watched.ejected, [4]);
    assert.equal(watched.stat('ejections_active'), 1);
    assert.equal(watched.stat('ejections_enforced_total'), 1);
    watched.interval(3);
    assert.equal(watched.stat('ejections_active'), 0);
  });
});

describe('what comparisons find', () => {
  const comparisons = [
    ['external', 'success_rate', 'failure_percentage'],
    ['local', 'local_origin_success_rate', 'local_origin_failure_percentage'],
  ] as const;
  for (const [origin, successRate, failurePercentage] of comparisons) {
    it(`is counted of ${origin} failures by how it was found`, () => {
      const enforced = {
        enforcing_failure_percentage: 100,
        enforcing_failure_percentage_local_origin: 100,
        failure_percentage_threshold: 90,
      };
      using watched = new Watched({ hosts: 5, detection: enforced });
      const counts = (): number[] =>
        [successRate, failurePercentage].flatMap((name) => [
          watched.stat(`ejections_detected_${name}`),
          watched.stat(`ejections_enforced_${name}`),
        ]);
      const rates = (...list: number[]): void => {
        for (const [index, rate] of list.entries()) watched.requests(index, 100, rate, origin);
      };
      rates(100, 100, 100, 100, 50);
      watched.interval();
      assert.deepEqual(counts(), [1, 1, 0, 0]);
      watched.interval(3);
      assert.deepEqual(watched.ejected, []);
      // Hosts that are all as bad are no outliers among themselves.
      rates(10, 10, 10, 10, 10);
      watched.interval();
      assert.deepEqual(counts(), [1, 1, 5, 5]);
      assert.equal(watched.stat('ejections_success_rate'), 1);
    });
  }
});
