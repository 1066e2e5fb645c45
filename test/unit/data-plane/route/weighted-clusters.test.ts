// Clusters by weight that a request's own hash decides between.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ProxyHeaders } from '../../../../src/data-plane/http/proxy-headers.ts';
import type { HashedSender } from '../../../../src/data-plane/route/forward-plan.ts';
import { Route } from '../../../../src/data-plane/route/route.ts';
import { RouteRequest } from '../../../../src/data-plane/route/route-request.ts';
import type { HashInput, WeightedCluster } from '../../../../src/snapshot/index.ts';
import { LbKernel } from '../../../../src/wasm/lb.ts';
import { requestHead } from '../../../support/heads.ts';
import { lbModule } from '../../../support/lb.ts';
import { forwardTo, routeFor } from '../../../support/routes.ts';
import { statsFixture } from '../../../support/stats.ts';

const kernel = new LbKernel(statsFixture({ workerCount: 1 }).owner.shared, lbModule);
const cookies: string[] = [];
const sender: HashedSender = {
  kernel,
  client: {
    clientAddress: '10.1.2.3',
    connectionEnds: { remote: { ip: '10.1.2.3', port: 4567 }, local: { ip: '::1', port: 80 } },
    state: () => undefined,
    setCookie: (text) => cookies.push(text),
  },
};

function entry(cluster: string, weight: number): WeightedCluster {
  return { cluster, weight, requestEdits: null, responseEdits: null, hostRewrite: '', criteria: null };
}

/** @returns the cluster of a request with these lines, for which chance would say `random`. */
function chooser(input: HashInput): (random: number, ...lines: string[]) => string | undefined {
  const weightedClusters = {
    entries: [entry('one', 1), entry('two', 1)],
    totalWeight: 2,
    runtimeKeyPrefix: '',
    decidedBy: { kind: 'hash' },
  } as const;
  const action = forwardTo('', { weightedClusters, hashPolicies: [{ ...input, isTerminal: false }] });
  const { plan } = new Route(routeFor('/', action), { name: 'v' }, new ProxyHeaders(), new RuntimeValues());
  return (random, ...lines) => {
    const request = new RouteRequest({ u32: () => random });
    request.read(requestHead('GET /', ...lines), false, false);
    return plan.kind === 'cluster' ? plan.choose(request, sender)?.name : undefined;
  };
}

test('equal hashes go to the same cluster, whatever chance says, and others to both', () => {
  const choose = chooser({ kind: 'header', name: 'x-user', rewrite: null });
  const chosen = Array.from({ length: 50 }, (_, user) => choose(user, `x-user: ${user}`));
  assert.deepEqual([...new Set(chosen)].sort(), ['one', 'two']);
  assert.deepEqual(
    Array.from({ length: 50 }, (_, user) => choose(user + 1, `x-user: ${user}`)),
    chosen,
  );
});

test('chance decides where there is no hash', () => {
  const choose = chooser({ kind: 'header', name: 'x-user', rewrite: null });
  assert.deepEqual([choose(0), choose(1)], ['one', 'two']);
});

test('a client that brings no cookie is hashed as it will be, and gets it from the choice of a host alone', () => {
  const choose = chooser({ kind: 'cookie', name: 'c', ttlSeconds: 0, path: '', attributes: [] });
  assert.equal(choose(0), choose(1));
  assert.deepEqual(cookies, []);
});
