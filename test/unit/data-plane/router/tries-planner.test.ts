// Plans of requests that may be tried several times: what they share, and what keeps them apart.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ForwardPlan } from '../../../../src/data-plane/route/forward-plan.ts';
import { RouteRequest } from '../../../../src/data-plane/route/route-request.ts';
import type { TriesPlan } from '../../../../src/data-plane/router/request-tries.ts';
import { TriesPlanner } from '../../../../src/data-plane/router/tries-planner.ts';
import type { PickContext } from '../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import type { ForwardAction, RetrySettings } from '../../../../src/snapshot/index.ts';
import { forwarding, type NotingStream, type RouterBenchOptions } from '../../../support/router-bench.ts';
import { retrySettings } from '../../../support/routes.ts';

interface Asked {
  readonly stream?: Partial<NotingStream>;
  readonly cluster?: RouterBenchOptions['cluster'];
  readonly pickContext?: PickContext;
  readonly lines?: readonly string[];
}

/** Requests of one route. */
function planning(retry: Partial<RetrySettings> = {}, action: Partial<ForwardAction> = {}) {
  const bench = forwarding({ retry: retrySettings(retry), ...action });
  const planner = new TriesPlanner(bench.context, bench.clusters, false);
  return ({ stream = {}, cluster, pickContext, lines = [] }: Asked = {}): TriesPlan => {
    const head = bench.read('GET /', ...lines);
    bench.stream.comesFromInside = stream.isInternal ?? false;
    const route = bench.router.find(bench.stream.asStream, head)!;
    const request = new RouteRequest(bench.context.random);
    request.read(head, stream.isInternal ?? false, false);
    const asked = {
      timeoutMs: 900,
      perTryTimeoutMs: 50,
      hedgesOnPerTryTimeout: false,
      bufferLimitBytes: 70,
      ...stream,
    };
    Object.assign(bench.stream, asked);
    const at = cluster === undefined ? bench.cluster : forwarding({}, { cluster }).cluster;
    return planner.plan(bench.stream.asStream, request, route, route.plan as ForwardPlan, at, pickContext ?? null)!;
  };
}

describe('the plan of a request that may be tried several times', () => {
  test('is that of the request before it when both ask the same', () => {
    const plan = planning();
    assert.equal(plan(), plan());
  });

  test('says what its request says otherwise', () => {
    const plan = planning();
    const usual = plan();
    const inside = { isInternal: true };
    const others: readonly [Asked, Partial<TriesPlan>][] = [
      [{ stream: { timeoutMs: 800 } }, { timeoutMs: 800 }],
      [{ stream: { perTryTimeoutMs: 40 } }, { perTryTimeoutMs: 40, expectedMs: 40 }],
      [{ stream: { hedgesOnPerTryTimeout: true } }, { hedges: true, expectedMs: 900 }],
      [{ stream: { bufferLimitBytes: 60 } }, { replayLimitBytes: 60 }],
      [{ cluster: { maxStreamDurationMs: 30 } }, { maxTryDurationMs: 30 }],
    ];
    for (const [asked, expected] of others) {
      assert.deepEqual(plan(asked), { ...usual, ...expected });
      assert.deepEqual(plan(), usual);
    }
    const own = plan({ stream: inside, lines: ['x-proxy-max-retries: 7'] });
    assert.equal(own.terms?.maxRetries, 7);
    const ofCluster = plan({ cluster: { retry: retrySettings({ perTryIdleTimeoutMs: 20 }) } });
    assert.equal(ofCluster.perTryIdleTimeoutMs, 20);
    assert.deepEqual(plan(), usual);
    const pickContext = { hash: 1 } as unknown as PickContext;
    assert.equal(plan({ pickContext }).pickContext, pickContext);
    assert.equal(plan().pickContext, null);
  });

  test('says what a service of gRPC is told where its route respects what it says', () => {
    const plan = planning({}, { grpcTimeout: { maxMs: 0, offsetMs: 0 } });
    assert.equal(plan().grpcExpectedMs, 0);
    assert.equal(plan({ stream: { isGrpc: true } }).grpcExpectedMs, 50);
    assert.equal(plan({ stream: { isGrpc: false } }).grpcExpectedMs, 0);
    assert.equal(planning()({ stream: { isGrpc: true } }).grpcExpectedMs, 0);
  });

  test('is its own where it notes the hosts that it has tried', () => {
    const tried = planning({ hostPredicates: [{ kind: 'previous-hosts' }] });
    assert.notEqual(tried().triedHosts, tried().triedHosts);
    const accompanied = planning({}, { initialRequests: 2 });
    assert.notEqual(accompanied().otherHosts, accompanied().otherHosts);
  });
});
