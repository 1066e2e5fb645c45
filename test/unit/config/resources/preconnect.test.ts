// PreconnectPolicy messages: what they become, and where they can have no effect.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  clusterErrors,
  clusterNamed,
  clusterSettings,
  faultTexts,
  type JsonObject,
  load,
  withClusters,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0].preconnect_policy';

function cluster(policy: JsonObject, fields: JsonObject = {}): JsonObject {
  return clusterNamed('web', { preconnect_policy: policy, ...fields });
}

function warnings(fields: JsonObject): string[] {
  return faultTexts(load(withClusters(cluster({ predictive_preconnect_ratio: 2 }, fields))), 'warning');
}

describe('a preconnect policy', () => {
  it('has ratios of hosts and of the cluster, each 1 by default', () => {
    const both = cluster({ per_upstream_preconnect_ratio: 1.5, predictive_preconnect_ratio: 3 });
    assert.deepEqual(clusterSettings(both).preconnect, { perHostRatio: 1.5, predictiveRatio: 3 });
    const one = cluster({ per_upstream_preconnect_ratio: 2 });
    assert.deepEqual(clusterSettings(one).preconnect, { perHostRatio: 2, predictiveRatio: 1 });
  });

  it('of ratios of 1 is none', () => {
    for (const policy of [{}, { per_upstream_preconnect_ratio: 1, predictive_preconnect_ratio: 1 }]) {
      assert.equal('preconnect' in clusterSettings(cluster(policy)), false);
    }
  });

  for (const field of ['per_upstream_preconnect_ratio', 'predictive_preconnect_ratio']) {
    it(`has a ${field} from 1 to 3`, () => {
      for (const ratio of [1, 3]) assert.deepEqual(clusterErrors(cluster({ [field]: ratio })), []);
      for (const ratio of [0.99, 3.01]) {
        const [error] = clusterErrors(cluster({ [field]: ratio }));
        assert.match(error!, new RegExp(`^${AT.replaceAll(/[.[\]]/g, '\\$&')}\\.${field}: ${ratio} `));
      }
    });
  }

  it('foresees hosts with balancers that take turns or draw, and warns with the others', () => {
    for (const lb_policy of ['ROUND_ROBIN', 'RANDOM']) assert.deepEqual(warnings({ lb_policy }), []);
    for (const lb_policy of ['LEAST_REQUEST', 'RING_HASH', 'MAGLEV']) {
      assert.deepEqual(warnings({ lb_policy }), [
        `${AT}.predictive_preconnect_ratio: has no effect: no host is foreseen with ${lb_policy}`,
      ]);
    }
  });

  it('foresees none where requests choose among subsets', () => {
    const subsets = { lb_subset_config: { subset_selectors: [{ keys: ['version'] }] } };
    assert.deepEqual(warnings(subsets), [
      `${AT}.predictive_preconnect_ratio: has no effect: hosts are chosen by subset`,
    ]);
    const settings = clusterSettings(cluster({ predictive_preconnect_ratio: 2 }, subsets));
    assert.equal('preconnect' in settings, false);
  });
});
