// What becomes of a request by its route: its answer, or the cluster, limits and head with which it goes to an upstream.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RequestHasher } from '../../../../src/data-plane/route/hash-policy.ts';
import { TcpRequest } from '../../../../src/data-plane/router/tcp-request.ts';
import { UpstreamAttempt } from '../../../../src/data-plane/router/upstream-attempt.ts';
import type { ForwardAction, RedirectAction } from '../../../../src/snapshot/index.ts';
import { OK } from '../../../support/attempt-bench.ts';
import { DEFAULT_HASHING } from '../../../support/lb.ts';
import { forwarding, RouterBench } from '../../../support/router-bench.ts';
import { connectRoute, directRoute, forwardTo, retrySettings, routeFor } from '../../../support/routes.ts';

const REDIRECT: RedirectAction = {
  kind: 'redirect',
  status: 302,
  scheme: '',
  host: 'new',
  port: 0,
  path: '',
  pathRewrite: null,
  stripQuery: false,
};

describe('a request', () => {
  test('goes to the cluster of its route', () => {
    const bench = forwarding({ timeoutMs: 0 });
    const { stream } = bench;
    const request = bench.routed('GET /p')!;
    assert.ok(request instanceof UpstreamAttempt);
    assert.equal(stream.cluster, bench.cluster);
    assert.equal(stream.target?.name, 'web');
    assert.equal(stream.route?.plan.kind, 'cluster');
    assert.equal(bench.httpStat('rq_total'), 1);
    assert.equal(request.head, 'GET /p HTTP/1.1\r\nhost: h\r\nedited: 1\r\n\r\n');
    bench.start(request);
    bench.upstream.accept();
    bench.upstream.send(OK);
    assert.equal(bench.stream.news().at(-1), `head ok| @${bench.nowMs}`);
    bench.assertNothingLeft();
  });

  test('without a route has no answer of any upstream', () => {
    const bench = new RouterBench([routeFor('/known', forwardTo('web'))]);
    assert.equal(bench.routed('GET /unknown'), null);
    assert.deepEqual(
      bench.stream.replies.map(({ details }) => details),
      ['route_not_found'],
    );
    assert.equal(bench.httpStat('no_route'), 1);
    assert.equal(bench.httpStat('rq_total'), 0);
    assert.equal(bench.router.find(bench.stream.asStream, bench.read('GET /unknown')), undefined);
    assert.equal(bench.stream.route, null);
  });

  test('keeps the route that was found for its filters', () => {
    const bench = new RouterBench([directRoute('/a', 200, 'a'), directRoute('/', 200, 'b')]);
    const found = bench.router.find(bench.stream.asStream, bench.read('GET /a'))!;
    assert.equal(bench.stream.foundRoute, found);
    assert.equal(bench.stream.route, null, 'a filter may answer before the router acts');
    bench.routed('GET /elsewhere');
    assert.deepEqual(
      bench.stream.replies.map(({ body }) => body),
      ['a'],
    );
    assert.equal(bench.httpStat('rq_direct_response'), 1);
  });

  for (const decidedBy of [undefined, { kind: 'header', name: 'x-draw' }] as const) {
    const how = decidedBy === undefined ? 'keeps the cluster that chance' : 'asks again for the cluster that a header';
    test(`${how} has drawn together with the route, while it keeps the route`, () => {
      const entry = (cluster: string) =>
        ({ cluster, weight: 1, requestEdits: null, responseEdits: null, hostRewrite: '', criteria: null }) as const;
      const weightedClusters = {
        entries: [entry('web'), entry('none')],
        totalWeight: 2,
        runtimeKeyPrefix: '',
        ...(decidedBy === undefined ? {} : { decidedBy }),
      };
      const weighted = forwardTo('', { weightedClusters });
      const bench = new RouterBench([routeFor('/a', weighted), routeFor('/', weighted)]);
      const find = (path: string, draw: number): string | undefined => {
        bench.workers.chance = draw;
        bench.router.find(bench.stream.asStream, bench.read(path, `x-draw: ${draw}`));
        return bench.stream.foundTarget?.name;
      };
      assert.equal(find('GET /a', 1), 'none');
      assert.equal(find('GET /a', 0), decidedBy === undefined ? 'none' : 'web');
      assert.equal(find('GET /b', 0), 'web');
      bench.workers.chance = 1;
      bench.routed('GET /b', 'x-draw: 1');
      assert.equal(bench.stream.target?.name, 'web');
    });
  }

  test('is matched by where it comes from', () => {
    for (const comesFromInside of [true, false]) {
      const bench = forwarding();
      bench.stream.comesFromInside = comesFromInside;
      bench.router.find(bench.stream.asStream, bench.read());
      assert.equal(bench.stream.isInternal, comesFromInside);
      bench.stream.isInternal = !comesFromInside;
      bench.routed();
      assert.equal(bench.stream.isInternal, comesFromInside);
    }
  });

  test('may be redirected by the proxy', () => {
    const bench = new RouterBench([routeFor('/', REDIRECT)]);
    assert.equal(bench.routed('GET /p'), null);
    assert.equal(bench.stream.replies[0]!.status, 302);
    assert.match(bench.stream.replies[0]!.location!, /new\/p$/);
    assert.equal(bench.httpStat('rq_redirect'), 1);
    assert.equal(bench.httpStat('rq_direct_response'), 0);
  });

  for (const [what, action] of [
    ['that is not there', { cluster: 'gone' }],
    ['that it does not name', { cluster: '', clusterHeader: 'x-cluster' }],
  ] as const) {
    test(`for a cluster ${what} is answered as its route has it`, () => {
      const bench = forwarding({ ...action, clusterNotFoundStatus: 404 });
      assert.equal(bench.routed(), null);
      assert.deepEqual(
        bench.stream.replies.map(({ status, details }) => [status, details]),
        [[404, 'cluster_not_found']],
      );
      assert.equal(bench.httpStat('no_cluster'), 1);
      assert.equal(bench.httpStat('rq_total'), 0);
      assert.equal(bench.stream.cluster, null);
    });
  }

  test('goes to the cluster that it names', () => {
    const bench = forwarding({ cluster: '', clusterHeader: 'x-cluster' });
    assert.ok(bench.routed('GET /', 'x-cluster: web') instanceof UpstreamAttempt);
  });

  test('from inside is refused for a control header without sense, where that is checked', () => {
    for (const comesFromInside of [true, false]) {
      const bench = forwarding({}, { settings: { strictlyCheckedHeaders: ['x-proxy-max-retries'] } });
      bench.stream.comesFromInside = comesFromInside;
      const request = bench.routed('GET /', 'x-proxy-max-retries: many');
      assert.equal(request === null, comesFromInside);
      assert.deepEqual(
        bench.stream.replies.map(({ status }) => status),
        comesFromInside ? [400] : [],
      );
      assert.equal(bench.httpStat('rq_total'), comesFromInside ? 0 : 1);
    }
  });

  test('that cannot be written as its route wants is answered, and told of', (t) => {
    const bench = forwarding({ hostRewrite: { kind: 'literal', value: 'a\nb' } });
    const told = t.mock.method(bench.context.logs.router, 'warning');
    assert.equal(bench.routed(), null);
    assert.equal(told.mock.callCount(), 1);
    assert.equal(bench.stream.replies.length, 1);
    assert.ok(bench.stream.replies[0]!.status >= 500);
  });
});

describe('a cluster that turns requests away', () => {
  test('does so in maintenance, and counts it', () => {
    const bench = forwarding();
    bench.context.runtime.replace(new Map([['upstream.maintenance_mode.web', '100']]));
    bench.stream.comesFromInside = true;
    assert.equal(bench.routed(), null);
    assert.deepEqual(
      bench.stream.replies.map(({ details }) => details),
      ['maintenance_mode'],
    );
    assert.equal(bench.stat('upstream_rq_maintenance_mode'), 1);
    assert.equal(bench.stat('upstream_rq_drop_overload'), 0);
    assert.equal(bench.stat('upstream_rq_completed'), 1);
    assert.ok(bench.workers.dynamicStats().includes('cluster.web.internal.upstream_rq_503'));
    assert.equal(bench.httpStat('rq_total'), 1);
    assert.equal(bench.stream.cluster, bench.cluster);
  });

  test('does so for the share that its assignment drops', () => {
    const bench = forwarding({}, { cluster: { dropShare: { numerator: 100, denominator: 100 } } });
    assert.equal(bench.routed(), null);
    assert.deepEqual(
      bench.stream.replies.map(({ details }) => details),
      ['drop_overload'],
    );
    assert.equal(bench.stat('upstream_rq_maintenance_mode'), 0);
    assert.equal(bench.stat('upstream_rq_drop_overload'), 1);
    assert.equal(bench.stat('upstream_rq_completed'), 1);
    assert.ok(!bench.workers.dynamicStats().some((name) => name.includes('canary')));
  });
});

describe('the limits of a request', () => {
  const limits = ({ stream }: RouterBench) => [stream.timeoutMs, stream.perTryTimeoutMs, stream.maxStreamDurationMs];

  test('are those of its route', () => {
    const retry = retrySettings({ perTryTimeoutMs: 200 });
    const bench = forwarding({ timeoutMs: 500, maxStreamDurationMs: 900, retry, idleTimeoutMs: 70 });
    bench.routed();
    assert.deepEqual(limits(bench), [500, 200, 0]);
    assert.equal(bench.stream.routeDurationMs, 900);
    assert.deepEqual(bench.stream.idleTimeouts, [70]);
    assert.ok(!bench.stream.hedgesOnPerTryTimeout);
    const other = forwarding({ timeoutMs: 500, hedgesOnPerTryTimeout: true });
    other.stream.perTryTimeoutMs = 77;
    other.stream.routeDurationMs = 78;
    other.stream.maxStreamDurationMs = 79;
    other.routed();
    assert.equal(other.stream.routeDurationMs, 0);
    assert.deepEqual(limits(other), [500, 0, 0]);
    assert.deepEqual(other.stream.idleTimeouts, []);
    assert.ok(other.stream.hedgesOnPerTryTimeout);
  });

  for (const [timeoutMs, perTryTimeoutMs, left] of [
    [500, 499, 499],
    [500, 500, 0],
    [500, 501, 0],
    [0, 500, 500],
  ] as const) {
    test(`have ${left} ms for a try, of ${perTryTimeoutMs} where all tries have ${timeoutMs}`, () => {
      const bench = forwarding({ timeoutMs, retry: retrySettings({ perTryTimeoutMs }) });
      bench.routed();
      assert.equal(bench.stream.perTryTimeoutMs, left);
    });
  }

  test('are its own where it comes from inside', () => {
    const lines = ['x-proxy-upstream-rq-timeout-ms: 50', 'x-proxy-upstream-rq-per-try-timeout-ms: 20'];
    for (const comesFromInside of [true, false]) {
      const bench = forwarding({ timeoutMs: 500 });
      bench.stream.comesFromInside = comesFromInside;
      bench.routed('GET /', ...lines);
      assert.deepEqual(limits(bench), comesFromInside ? [50, 20, 0] : [500, 0, 0]);
    }
  });

  test('are those that the proxy before expects where that counts', () => {
    for (const respectsExpectedTimeout of [true, false]) {
      const bench = forwarding({ timeoutMs: 500 }, { settings: { respectsExpectedTimeout } });
      bench.stream.comesFromInside = true;
      bench.routed('GET /', 'x-proxy-expected-rq-timeout-ms: 60');
      assert.equal(bench.stream.timeoutMs, respectsExpectedTimeout ? 60 : 500);
    }
  });

  test('are those of gRPC where the route respects them', () => {
    const timeoutOf = (action: Partial<ForwardAction>, isGrpc: boolean): number => {
      const bench = forwarding({ timeoutMs: 500, ...action });
      bench.stream.isGrpc = isGrpc;
      bench.routed('POST /', 'grpc-timeout: 40m');
      return bench.stream.timeoutMs;
    };
    const action = { grpcTimeout: { maxMs: 0, offsetMs: 0 } };
    assert.equal(timeoutOf(action, true), 40);
    assert.equal(timeoutOf(action, false), 500);
    assert.equal(timeoutOf({}, true), 500);
  });
});

describe('a head that goes to an upstream', () => {
  test('says how long it may take', () => {
    assert.deepEqual(forwarding({ timeoutMs: 500 }).forwarded(), ['x-proxy-expected-rq-timeout-ms: 500']);
    assert.deepEqual(forwarding({ timeoutMs: 500 }, { settings: { suppressProxyHeaders: true } }).forwarded(), []);
  });

  test('asks for trailers where they can pass', () => {
    for (const [enableTrailers, ofCluster, te, asks] of [
      [true, true, 'te: trailers', true],
      [true, true, 'x: 1', false],
      [true, false, 'te: trailers', false],
      [false, true, 'te: trailers', false],
    ] as const) {
      const bench = forwarding(
        { timeoutMs: 0 },
        { settings: { enableTrailers }, cluster: { enableTrailers: ofCluster } },
      );
      assert.equal(bench.forwarded('GET /', te).includes('te: trailers'), asks);
    }
  });

  test('asks for an upgrade where the client awaits one', () => {
    for (const awaitsTunnel of [true, false]) {
      const bench = forwarding({ timeoutMs: 0 });
      bench.stream.awaitsTunnel = awaitsTunnel;
      const lines = bench.forwarded('GET /', 'connection: upgrade', 'upgrade: x');
      assert.deepEqual(lines, awaitsTunnel ? ['upgrade: x', 'connection: upgrade'] : []);
    }
  });
});

describe('the host of a request', () => {
  const header = { kind: 'header', name: 'x-user', rewrite: null, isTerminal: false } as const;
  const hostsOf = (bench: RouterBench, users: readonly string[]) =>
    users.map((user) => {
      bench.start(bench.routed('GET /', `x-user: ${user}`)!);
      return bench.stream.news()[0]!.split(' ')[1];
    });

  for (const [lbPolicy, ofRoute, ofCluster, isHashed] of [
    ['RING_HASH', true, false, true],
    ['RING_HASH', false, true, true],
    ['RING_HASH', false, false, false],
    ['ROUND_ROBIN', true, false, false],
  ] as const) {
    test(`goes by ${isHashed ? 'the' : 'no'} hash with ${lbPolicy}, by route ${ofRoute} and cluster ${ofCluster}`, () => {
      const cluster = { lbPolicy, hashing: { ...DEFAULT_HASHING, policies: ofCluster ? [header] : [] } };
      const bench = forwarding({ hashPolicies: ofRoute ? [header] : [] }, { cluster, hosts: 8 });
      const [first, second] = [
        hostsOf(bench, ['a', 'b', 'c', 'd', 'e', 'f']),
        hostsOf(bench, ['a', 'b', 'c', 'd', 'e', 'f']),
      ];
      if (!isHashed) {
        if (lbPolicy === 'ROUND_ROBIN') assert.notDeepEqual(first, second);
        return;
      }
      assert.deepEqual(first, second);
      assert.ok(new Set(first).size > 1);
    });
  }

  test('goes by the subset of its route beside its hash', (t) => {
    const hash = t.mock.method(RequestHasher.prototype, 'hash', () => null);
    for (const criteria of [[['stage', '"test"'] as const], null]) {
      const bench = forwarding({ hashPolicies: [header], criteria }, { cluster: { lbPolicy: 'RING_HASH' } });
      bench.routed();
      assert.equal(hash.mock.calls.at(-1)!.arguments[3] !== null, criteria !== null);
    }
  });

  test('is the one that the client meant where the cluster goes by that', () => {
    const bench = forwarding({}, { cluster: { originalDst: { header: null, port: 0 } }, hosts: 3 });
    bench.stream.connectionEnds.originalDestination = { ip: '127.0.0.1', port: 3 };
    bench.start(bench.routed()!);
    assert.deepEqual(bench.stream.news(), ['host 127.0.0.1:3 #1']);
  });
});

describe('a CONNECT', () => {
  test('goes to a proxy, or ends here, as its route has it', () => {
    const passing = new RouterBench([connectRoute()]);
    assert.ok(passing.routed('CONNECT far:1') instanceof UpstreamAttempt);
    const ending = new RouterBench([connectRoute({ terminatesConnect: true, isHighPriority: true })]);
    const request = ending.routed('CONNECT far:1')!;
    assert.ok(request instanceof TcpRequest);
    assert.match(request.head, /^CONNECT far:1 HTTP/);
    assert.ok(forwarding({ terminatesConnect: true }).routed() instanceof UpstreamAttempt);
  });

  for (const [ofRoute, ofCluster] of [
    [0, 0],
    [500, 0],
    [0, 400],
    [300, 400],
  ] as const) {
    test(`that ends here lasts ${ofRoute} ms by its route, and ${ofCluster} ms by its cluster`, () => {
      const route = connectRoute({ terminatesConnect: true, maxStreamDurationMs: ofRoute });
      const bench = new RouterBench([route], { cluster: { maxStreamDurationMs: ofCluster } });
      bench.routed('CONNECT far:1');
      assert.equal(bench.stream.routeDurationMs, ofRoute);
      assert.equal(bench.stream.maxStreamDurationMs, ofCluster);
    });
  }

  test('has the duration of its route alone where it goes on as a request', () => {
    const bench = forwarding({ maxStreamDurationMs: 500 }, { cluster: { maxStreamDurationMs: 400 } });
    bench.routed();
    assert.equal(bench.stream.routeDurationMs, 500);
    assert.equal(bench.stream.maxStreamDurationMs, 0);
  });
});
