// Hosts that retries turn down, by the predicates of a policy.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileRetryPolicy } from '../../../../src/data-plane/route/retry-policy.ts';
import { TriedHosts } from '../../../../src/data-plane/router/tried-hosts.ts';
import type { Host } from '../../../../src/data-plane/upstream/host.ts';
import type { RetryHostPredicate, RetrySettings } from '../../../../src/snapshot/index.ts';
import { retrySettings } from '../../../support/routes.ts';

type HostFields = Partial<Pick<Host, 'canary' | 'priority' | 'metadata'>>;

/** What of a host is looked at. */
function host(fields: HostFields = {}): Host {
  return { canary: false, priority: 0, metadata: undefined, ...fields } as Host;
}

function tried(hostPredicates: readonly RetryHostPredicate[], more: Partial<RetrySettings> = {}): TriedHosts {
  return new TriedHosts(compileRetryPolicy(retrySettings({ hostPredicates, ...more })));
}

describe('a retry', () => {
  test('goes anywhere where no predicate turns a host down', () => {
    const hosts = tried([]);
    const one = host({ canary: true });
    hosts.note(one);
    assert.ok(hosts.accepts(one));
  });

  test('does not go where an attempt has been', () => {
    const hosts = tried([{ kind: 'previous-hosts' }]);
    const [one, two, three] = [host(), host(), host()];
    hosts.note(one);
    hosts.note(three);
    assert.deepEqual(
      [one, two, three].map((each) => hosts.accepts(each)),
      [false, true, false],
    );
  });

  test('does not go to a canary', () => {
    const hosts = tried([{ kind: 'canary-hosts' }]);
    hosts.note(host());
    assert.deepEqual([hosts.accepts(host({ canary: true })), hosts.accepts(host())], [false, true]);
  });

  test('goes nowhere that any of its predicates turns down', () => {
    const hosts = tried([{ kind: 'canary-hosts' }, { kind: 'previous-hosts' }]);
    const [one, two] = [host(), host()];
    hosts.note(one);
    assert.deepEqual(
      [one, two, host({ canary: true })].map((each) => hosts.accepts(each)),
      [false, true, false],
    );
  });

  test('draws once, and as many times more as the policy has it', () => {
    assert.equal(tried([], { maxFurtherDraws: 0 }).maxDraws, 1);
    assert.equal(tried([], { maxFurtherDraws: 5 }).maxDraws, 6);
    assert.equal(tried([]).draw, 0);
  });
});

describe('hosts whose metadata a retry turns down', () => {
  const isTurnedDown = (values: Record<string, unknown>, metadata: unknown): boolean =>
    !tried([{ kind: 'metadata', values: values as never }]).accepts(host({ metadata: metadata as Host['metadata'] }));

  test('say all of it', () => {
    const values = { stage: 'canary', rack: 7 };
    assert.ok(isTurnedDown(values, { 'proxy.lb': { stage: 'canary', rack: 7, more: true } }));
    assert.ok(!isTurnedDown(values, { 'proxy.lb': { stage: 'canary' } }));
    assert.ok(!isTurnedDown(values, { 'proxy.lb': { stage: 'canary', rack: '7' } }));
  });

  test('say it in the namespace of the balancer, by either of its names', () => {
    assert.ok(isTurnedDown({ a: 1 }, { 'envoy.lb': { a: 1 } }));
    assert.ok(isTurnedDown({ a: 1 }, { other: { a: 2 }, 'envoy.lb': { a: 1 } }));
    assert.ok(!isTurnedDown({ a: 1 }, { other: { a: 1 } }));
    assert.ok(!isTurnedDown({ a: 1 }, undefined));
    // The canonical one counts where there are both.
    assert.ok(!isTurnedDown({ a: 1 }, { 'proxy.lb': { a: 2 }, 'envoy.lb': { a: 1 } }));
  });

  test('say each element of a list', () => {
    const metadata = { 'proxy.lb': { a: ['x', 'y', ['z']] } };
    assert.deepEqual(
      ['x', 'y', 'z', ['z'], ['x', 'y', ['z']]].map((a) => isTurnedDown({ a }, metadata)),
      [true, true, false, true, false],
    );
  });

  test('are all where nothing is asked', () => {
    assert.ok(isTurnedDown({}, undefined));
  });
});

describe('priorities that retries leave', () => {
  const after = (frequency: number, priorities: readonly number[]): number[][] => {
    const hosts = tried([], { previousPrioritiesFrequency: frequency });
    return priorities.map((priority) => {
      hosts.note(host({ priority }));
      return [...hosts.spentPriorities];
    });
  };

  test('are those that were tried, each so many tries anew', () => {
    assert.deepEqual(after(1, [0, 2, 1]), [[0], [0, 2], [0, 2, 1]]);
    assert.deepEqual(after(2, [0, 1, 2, 0]), [[], [0, 1], [0, 1], [0, 1, 2]]);
    assert.deepEqual(after(3, [0, 0, 1, 2]), [[], [], [0, 1], [0, 1]]);
  });

  test('are none where the policy does not ask for it', () => {
    assert.deepEqual(after(0, [0, 1]), [[], []]);
  });
});
