// Where a request or connection to an ORIGINAL_DST cluster goes, what it is told when it can go nowhere, and what counts
// that. original-destinations.test.ts has the rest: hosts that come and go.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatAddress, type IpAddress } from '../../../../src/base/address.ts';
import type { RequestSender, RouteRequest } from '../../../../src/data-plane/route/route-request.ts';
import { CircuitBreaker } from '../../../../src/data-plane/upstream/circuit-breaker.ts';
import type { HostUser, NamedHost } from '../../../../src/data-plane/upstream/destinations.ts';
import {
  contextFor,
  contextOf,
  type PickContext,
} from '../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import { OriginalDestinations } from '../../../../src/data-plane/upstream/original-destinations.ts';
import type { OriginalDstSettings } from '../../../../src/snapshot/index.ts';
import type { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { requestHead, routeRequest } from '../../../support/heads.ts';
import { UpstreamWorkers } from '../../../support/upstream-workers.ts';

/** Questions that one worker may have of main at a time. */
const MAX_QUESTIONS = 1024;
const TIMEOUT_MS = 2000;

class TestHost implements NamedHost {
  readonly destination: IpAddress;
  readonly key: string;
  isUnhealthy = false;
  wanted = 0;

  constructor(port: number, ip = '10.0.0.1') {
    this.destination = { kind: 'ip', ip, port };
    this.key = formatAddress(this.destination);
  }

  noteWanted(): void {
    this.wanted += 1;
  }
}

class User implements HostUser<TestHost> {
  told: (TestHost | string)[] = [];
  onTold: () => void = () => {};

  onHost(host: TestHost): void {
    this.told.push(host);
    this.onTold();
  }

  onNoHost(reason: string): void {
    this.told.push(reason);
    this.onTold();
  }
}

class Bench {
  readonly workers = new UpstreamWorkers(1, () => {});
  readonly snapshot = this.workers.cluster(0, {});
  readonly context = this.workers.contexts[0]!;
  readonly asked: string[] = [];
  readonly breaker: CircuitBreaker;
  readonly destinations: OriginalDestinations<TestHost>;

  constructor(settings: Partial<OriginalDstSettings> = {}, maxPendingRequests = 2 * MAX_QUESTIONS) {
    const requestHost = (cluster: string, address: IpAddress) =>
      void this.asked.push(`${cluster} ${formatAddress(address)}`);
    Object.assign(this.context, { requestHost });
    const limits = { ...NO_LIMITS, maxPendingRequests };
    const { recordAddress, statBlock } = this.snapshot;
    this.breaker = new CircuitBreaker(this.context, recordAddress, 'web', ClusterPriority.default, limits);
    const owner = { name: 'web', statBase: this.context.stats.base(statBlock), waitMs: TIMEOUT_MS };
    this.destinations = new OriginalDestinations(this.context, owner, { header: null, port: 0, ...settings });
  }

  choose(port: number): User {
    const user = new User();
    this.destinations.choose(contextFor({ kind: 'ip', ip: '10.0.0.1', port }), this.breaker, user);
    return user;
  }

  stat(name: keyof typeof CLUSTER_STATS.index): number {
    return this.workers.clusterStat(this.snapshot, name);
  }
}

/** A request with one header at most, x-to. */
function requestTo(value: string | null): RouteRequest {
  return routeRequest(requestHead('GET /', ...(value === null ? [] : [`x-to: ${value}`])));
}

describe('a request goes', () => {
  const meant = { originalDestination: { ip: '10.0.0.9', port: 99 }, requestedServerName: '' };

  for (const [what, settings, value, expected, invalid] of [
    ['where its client meant to go', {}, '10.0.0.2:22', '10.0.0.9:99', 0],
    ['where its header says', { header: 'x-to' }, '10.0.0.2:22', '10.0.0.2:22', 0],
    ['where its client meant to go without the header', { header: 'x-to' }, null, '10.0.0.9:99', 0],
    ['where its client meant to go by a header of no use', { header: 'x-to' }, 'somewhere', '10.0.0.9:99', 1],
    ['to the port of the cluster', { port: 7 }, null, '10.0.0.9:7', 0],
    ['to the port of the cluster, whatever its header says', { header: 'x-to', port: 7 }, '[::2]:22', '[::2]:7', 0],
  ] as const) {
    test(what, () => {
      const bench = new Bench(settings);
      const { destination } = bench.destinations.contextOf(requestTo(value), meant)!;
      assert.equal(formatAddress(destination!), expected);
      assert.equal(destination!.kind, 'ip');
      assert.equal(bench.stat('original_dst_host_invalid'), invalid);
    });
  }

  const metadata = { namespace: 'ns', path: ['to'] };
  const saying = (to: string | number) => ({ ns: { to } });
  for (const [what, ofRequest, ofConnection, expected, invalid] of [
    ['where filters say', saying('10.0.0.3:33'), saying('10.0.0.4:44'), '10.0.0.3:33', 0],
    ['where filters of its connection say', {}, saying('10.0.0.4:44'), '10.0.0.4:44', 0],
    ['where its header says, if filters do not say it as text', saying(3), undefined, '10.0.0.2:22', 0],
    ['where its header says, if filters say nothing of use', saying('there'), undefined, '10.0.0.2:22', 1],
    ['where its header says, if filters say nothing', undefined, undefined, '10.0.0.2:22', 0],
  ] as const) {
    test(what, () => {
      const bench = new Bench({ header: 'x-to', metadata });
      const request = requestTo('10.0.0.2:22');
      request.sender = { dynamicMetadata: ofRequest } as unknown as RequestSender;
      const { destination } = bench.destinations.contextOf(request, { ...meant, metadata: ofConnection })!;
      assert.equal(formatAddress(destination!), expected);
      assert.equal(bench.stat('original_dst_host_invalid'), invalid);
    });
  }

  test('nowhere when nobody says where, which a connection cannot do by a header', () => {
    const bench = new Bench({ header: 'x-to' });
    assert.equal(bench.destinations.contextOf(requestTo(null), null), null);
    assert.equal(bench.destinations.contextOf(null, null), null);
    for (const context of [null, contextOf(null)]) {
      const user = new User();
      bench.destinations.choose(context, bench.breaker, user);
      assert.deepEqual(user.told, ['none']);
    }
    assert.deepEqual(bench.asked, []);
  });
});

describe('a host that is not there', () => {
  test('is asked of main by its address, and given to all who want it when it comes', () => {
    const bench = new Bench();
    const users = [bench.choose(1), bench.choose(2), bench.choose(1)];
    assert.deepEqual(bench.asked, ['web 10.0.0.1:1', 'web 10.0.0.1:2']);
    const host = new TestHost(1);
    bench.destinations.add(host);
    assert.deepEqual(bench.choose(1).told, [host]);
    assert.deepEqual(
      users.map(({ told }) => told),
      [[host], [], [host]],
    );
    assert.equal(bench.context.wheel.size, 1);
    // A connection says at its end that it does not wait, whether it does or not.
    bench.destinations.cancel(users[0]!);
    bench.workers.clock.turn(TIMEOUT_MS - 100);
    assert.deepEqual(users[1]!.told, []);
    bench.workers.clock.turn(200);
    assert.deepEqual(users[1]!.told, ['none']);
    assert.equal(bench.context.wheel.size, 0);
    assert.equal(bench.stat('original_dst_host_overflow'), 0);
    assert.equal(bench.stat('upstream_rq_pending_overflow'), 0);
  });

  test('is refused to all who wait for it when main has no room, which counts once', () => {
    const bench = new Bench();
    const users = [bench.choose(1), bench.choose(1), bench.choose(2)];
    bench.destinations.refuse('10.0.0.1:1', 'overflow');
    bench.destinations.refuse('10.0.0.1:3', 'overflow');
    assert.deepEqual(
      users.map(({ told }) => told),
      [['overflow'], ['overflow'], []],
    );
    assert.equal(bench.stat('original_dst_host_overflow'), 1);
    bench.choose(1);
    assert.equal(bench.asked.length, 3);
  });

  test('is waited for by nobody when its cluster has gone', () => {
    const bench = new Bench();
    const users = [bench.choose(1), bench.choose(2), bench.choose(2)];
    bench.destinations.close();
    assert.deepEqual(
      users.map(({ told }) => told),
      [['none'], ['none'], ['none']],
    );
    assert.equal(bench.context.wheel.size, 0);
  });

  test('is not waited for by more requests than may', () => {
    const bench = new Bench({}, 1);
    const [waiting, refused] = [bench.choose(1), bench.choose(1)];
    assert.deepEqual([waiting.told, refused.told], [[], ['overflow']]);
    assert.equal(bench.stat('upstream_rq_pending_overflow'), 1);
    assert.equal(bench.stat('original_dst_host_overflow'), 0);
    bench.destinations.cancel(refused);
    bench.destinations.cancel(waiting);
    assert.deepEqual(bench.choose(1).told, []);
  });

  test('is not asked for while too many others are, unless somebody has asked already', () => {
    const bench = new Bench();
    for (let port = 1; port <= MAX_QUESTIONS; port++) assert.deepEqual(bench.choose(port).told, []);
    assert.deepEqual(bench.choose(MAX_QUESTIONS + 1).told, ['overflow']);
    assert.equal(bench.asked.length, MAX_QUESTIONS);
    assert.equal(bench.stat('original_dst_host_overflow'), 1);
    assert.deepEqual(bench.choose(1).told, []);
    bench.destinations.refuse('10.0.0.1:1', 'overflow');
    assert.deepEqual(bench.choose(MAX_QUESTIONS + 1).told, []);
  });

  test('is given to nobody whom another has ended meanwhile', () => {
    const bench = new Bench();
    const [first, second] = [bench.choose(1), bench.choose(1)];
    first.onTold = () => bench.destinations.cancel(second);
    const host = new TestHost(1);
    bench.destinations.add(host);
    assert.deepEqual([first.told, second.told], [[host], []]);
  });
});

describe('a host that is there', () => {
  const meant = { originalDestination: { ip: '10.0.0.1', port: 1 }, requestedServerName: '' };

  test('is found by its address however it is written, until it has gone', () => {
    const bench = new Bench({ header: 'x-to' });
    const host = new TestHost(1);
    bench.destinations.add(host);
    bench.destinations.add(new TestHost(2));
    const told = (context: PickContext | null) => {
      const user = new User();
      bench.destinations.choose(context, bench.breaker, user);
      return user.told;
    };
    const byText = bench.destinations.contextOf(requestTo('10.0.0.1:1'), null);
    assert.deepEqual(told(byText), [host]);
    assert.deepEqual(told(bench.destinations.contextOf(requestTo('[::ffff:10.0.0.1]:1'), null)), [host]);
    assert.deepEqual(told(bench.destinations.contextOf(null, meant)), [host]);
    // Made once, and not for each request.
    assert.equal(bench.destinations.contextOf(requestTo('10.0.0.1:1'), null), byText);
    assert.equal(bench.destinations.contextOf(null, meant), byText);
    bench.destinations.remove(host);
    assert.deepEqual(told(bench.destinations.contextOf(requestTo('10.0.0.1:1'), null)), []);
    assert.deepEqual(bench.asked, ['web 10.0.0.1:1']);
    assert.notEqual(bench.destinations.contextOf(requestTo('10.0.0.1:1'), null), byText);
  });

  test('is there when another at its port has gone', () => {
    const bench = new Bench();
    const [host, other] = [new TestHost(1), new TestHost(1, '10.0.0.2')];
    for (const each of [host, other]) bench.destinations.add(each);
    bench.destinations.remove(other);
    assert.deepEqual(bench.choose(1).told, [host]);
  });

  test('is found at the port of the cluster, whatever port was meant', () => {
    const bench = new Bench({ header: 'x-to', port: 7 });
    const host = new TestHost(7);
    bench.destinations.add(host);
    bench.destinations.add(new TestHost(1));
    for (const context of [
      bench.destinations.contextOf(requestTo('10.0.0.1:1'), null),
      bench.destinations.contextOf(null, meant),
    ]) {
      assert.equal(context!.destination, host.destination);
    }
  });

  test('gets nothing while it is not healthy, and is noted to be wanted', () => {
    const bench = new Bench();
    const waiting = bench.choose(1);
    const host = new TestHost(1);
    host.isUnhealthy = true;
    bench.destinations.add(host);
    assert.deepEqual(waiting.told, ['none']);
    assert.deepEqual(bench.choose(1).told, ['none']);
    assert.equal(host.wanted, 2);
    host.isUnhealthy = false;
    assert.deepEqual(bench.choose(1).told, [host]);
    assert.equal(host.wanted, 2);
  });
});
