// Aggregate clusters as they are configured, and what is refused of them.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clusterNamed, faultTexts, type JsonObject, load, mustLoad, withClusters } from '../../../support/bootstrap.ts';

const TYPE = 'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig';
const OLDER_TYPE = 'type.googleapis.com/envoy.config.cluster.aggregate.v2alpha.ClusterConfig';

function aggregate(name: string, clusters: readonly string[], fields: JsonObject = {}, type = TYPE): JsonObject {
  const cluster_type = { name: 'envoy.clusters.aggregate', typed_config: { '@type': type, clusters } };
  return { name, cluster_type, lb_policy: 'CLUSTER_PROVIDED', ...fields };
}

const A = clusterNamed('a');
const B = clusterNamed('b');

describe('an aggregate cluster', () => {
  it('lists the clusters that have its hosts, by the names of both generations', () => {
    for (const type of [TYPE, OLDER_TYPE]) {
      const [, , settings] = mustLoad(withClusters(A, B, aggregate('all', ['b', 'a'], {}, type))).clusters;
      assert.deepEqual(settings!.aggregate, ['b', 'a']);
      assert.deepEqual([settings!.discovery, settings!.hosts], [{ kind: 'static' }, []]);
    }
    assert.equal(mustLoad(withClusters(A)).clusters[0]!.aggregate, undefined);
  });

  it('lists each of them once', () => {
    const result = load(withClusters(A, B, aggregate('all', ['b', 'a', 'b'])));
    assert.deepEqual(result.bootstrap!.clusters[2]!.aggregate, ['b', 'a']);
    const at = 'static_resources.clusters[2].cluster_type.typed_config.clusters';
    assert.match(faultTexts(result, 'warning').join('\n'), /ignored: is \S+\.clusters\[0\] already/);
    assert.ok(faultTexts(result, 'warning').some((text) => text.includes(`${at}[2]`)));
  });

  it('is refused with names that lead nowhere, or back to itself', () => {
    const errors = (...clusters: readonly JsonObject[]): string =>
      faultTexts(load(withClusters(...clusters))).join('\n');
    assert.match(errors(A, aggregate('all', ['aa'])), /clusters\[0\]: cluster "aa" does not exist; did you mean "a"\?/);
    assert.match(errors(A, aggregate('all', [])), /clusters/);
    assert.match(
      errors(A, aggregate('all', ['a', 'all'])),
      /clusters\[1\]: an aggregate cluster cannot be one of its own/,
    );
    const circle = errors(A, aggregate('all', ['a', 'more']), aggregate('more', ['all']));
    assert.match(circle, /clusters\[1\]\S+: leads back to the cluster itself: "all", "more", "all"/);
    assert.match(circle, /clusters\[2\]\S+: leads back to the cluster itself: "more", "all", "more"/);
    assert.equal(errors(A, aggregate('all', ['a', 'more']), aggregate('more', ['a'])), '');
  });

  it('needs the balancer that it is', () => {
    const { lb_policy: _none, ...byDefault } = aggregate('all', ['a']);
    assert.match(
      faultTexts(load(withClusters(A, byDefault))).join(),
      /type AGGREGATE needs CLUSTER_PROVIDED, not ROUND/,
    );
  });

  it('has no hosts of its own, and says nothing of connections', () => {
    const { load_assignment } = A as { load_assignment: JsonObject };
    const errors = faultTexts(load(withClusters(A, aggregate('all', ['a'], { load_assignment }))));
    assert.match(errors.join(), /load_assignment: type AGGREGATE has the hosts of its clusters/);
    const warnings = faultTexts(load(withClusters(A, aggregate('all', ['a'], { outlier_detection: {} }))), 'warning');
    assert.match(warnings.join(), /outlier_detection: has no effect on type AGGREGATE/);
  });
});
