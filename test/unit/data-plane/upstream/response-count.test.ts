// In which stats a response counts: by its status, by the request's origin, as that of a canary, and by its host's zone.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { countResponse, countStatus, recordResponseTime } from '../../../../src/data-plane/upstream/response-count.ts';
import { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { Method } from '../../../../src/wasm/http1.ts';
import { UpstreamWorkers } from '../../../support/upstream-workers.ts';

const LIMITS = { maxHeadBytes: 60_000, maxFields: 100 };

interface Response {
  readonly status?: number;
  readonly isInternal?: boolean;
  readonly fields?: string;
  readonly isCanaryHost?: boolean;
}

function bench({ isCanaryHost = false, zone = '' } = {}) {
  const workers = new UpstreamWorkers(1, () => {});
  const context = workers.contexts[0]!;
  Object.assign(context, { localZone: 'here' });
  const snapshot = workers.cluster(1, {});
  const [member] = snapshot.hosts;
  const locality = { region: '', zone, subZone: '' };
  const hosts = [{ ...member!, canary: isCanaryHost, locality }];
  const cluster = workers.open(0, { ...snapshot, hosts });
  return { workers, context, snapshot, cluster, host: cluster.hosts[0]! };
}

/** A request that nobody counts beside its cluster. */
const EXTERNAL = { isInternal: false, tally: null };

/** Counts one response. @returns where it was counted, and what it was taken for. */
function counted({ status = 200, isInternal = false, fields = '', isCanaryHost = false }: Response) {
  const { workers, context, snapshot, cluster, host } = bench({ isCanaryHost });
  const head = Buffer.from(`HTTP/1.1 ${status} X\r\n${fields}\r\n`);
  assert.equal(context.codec.parseResponse(head, 0, head.length, LIMITS, Method.GET), head.length);
  const isCanary = countResponse(context, cluster, host, status, status, { isInternal, tally: null });
  assert.equal(workers.clusterStat(snapshot, 'upstream_rq_completed'), 1);
  const [errors, successes] = [workers.hostStat(snapshot, 0, 'rq_error'), workers.hostStat(snapshot, 0, 'rq_success')];
  return { isCanary, errors, successes, names: ofCode(workers, status) };
}

/** What stands before the name of the code. */
function ofCode(workers: UpstreamWorkers, status: number): string[] {
  const end = `upstream_rq_${status}`;
  return workers
    .dynamicStats()
    .filter((name) => name.endsWith(end))
    .map((name) => name.slice('cluster.web.'.length, -end.length));
}

describe('a response', () => {
  for (const [status, isError] of [
    [200, false],
    [499, false],
    [500, true],
    [503, true],
  ] as const) {
    test(`of ${status} is ${isError ? 'an error' : 'a success'} of its host`, () => {
      const { errors, successes } = counted({ status });
      assert.deepEqual([errors, successes], isError ? [1, 0] : [0, 1]);
    });
  }

  test('counts among all, and among those to requests of the same origin', () => {
    assert.deepEqual(counted({}).names, ['', 'external.']);
    assert.deepEqual(counted({ isInternal: true }).names, ['', 'internal.']);
  });

  for (const [what, response, expected] of [
    ['whose host is one', { isCanaryHost: true }, true],
    ['that says so', { fields: 'x-proxy-upstream-canary: true\r\n' }, true],
    ['that says it is none', { fields: 'x-proxy-upstream-canary: false\r\n' }, false],
    ['that says nothing of it', { fields: 'x-other: true\r\n' }, false],
  ] as const) {
    test(`${what} is ${expected ? 'that' : 'not that'} of a canary`, () => {
      const { isCanary, names } = counted(response);
      assert.equal(isCanary, expected);
      assert.equal(names.includes('canary.'), expected);
    });
  }
});

test('what a client is told in place of a response counts without a host', () => {
  const { workers, context, snapshot, cluster } = bench();
  countStatus(context, cluster, null, 503, EXTERNAL, false);
  assert.deepEqual(ofCode(workers, 503), ['', 'external.']);
  assert.equal(workers.clusterStat(snapshot, 'upstream_rq_completed'), 1);
  assert.equal(workers.hostStat(snapshot, 0, 'rq_error'), 0);
});

test('responses and their times count by the zones of both sides', () => {
  const { workers, context, cluster, host } = bench({ zone: 'there' });
  countStatus(context, cluster, host, 200, EXTERNAL, false);
  recordResponseTime(context, cluster, host, 5, EXTERNAL, false);
  const names = workers.dynamicStats();
  assert.ok(names.includes('cluster.web.zone.here.there.upstream_rq_200'));
  assert.ok(names.includes('cluster.web.zone.here.there.upstream_rq_time'));
});

describe('the time of a response', () => {
  for (const [isInternal, isCanary, expected] of [
    [false, false, ['external.']],
    [true, false, ['internal.']],
    [false, true, ['canary.', 'external.']],
    [true, true, ['canary.', 'internal.']],
  ] as const) {
    const origin = isInternal ? 'an internal' : 'an external';
    test(`counts among all, and where the response did: of ${origin} request${isCanary ? ', by a canary' : ''}`, () => {
      const { workers, context, snapshot, cluster, host } = bench();
      recordResponseTime(context, cluster, host, 12, { isInternal, tally: null }, isCanary);
      assert.deepEqual(workers.clusterSamples(snapshot, 'upstream_rq_time'), [12]);
      const names = expected.map((prefix) => `cluster.web.${prefix}upstream_rq_time`);
      assert.deepEqual(workers.dynamicStats().toSorted(), names);
    });
  }
});

test('the time of a response goes to its host only where main has said so', () => {
  const { workers, context, snapshot, cluster, host } = bench();
  const record = (elapsedMs: number): void => recordResponseTime(context, cluster, host, elapsedMs, EXTERNAL, false);
  // Any histogram will do.
  const lent = snapshot.statBlock + CLUSTER_STATS.index.upstream_cx_length_ms;
  record(1);
  workers.records.setHostTimes(host.record, lent);
  record(2);
  workers.records.setHostTimes(host.record, 0);
  record(3);
  assert.deepEqual(workers.clusterSamples(snapshot, 'upstream_cx_length_ms'), [2]);
  assert.deepEqual(workers.clusterSamples(snapshot, 'upstream_rq_time'), [1, 2, 3]);
});
