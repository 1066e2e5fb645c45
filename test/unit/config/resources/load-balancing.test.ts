import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ClusterSettings } from '../../../../src/snapshot/index.ts';
import {
  clusterNamed,
  faultTexts,
  type JsonObject,
  load,
  mustLoad,
  socketAddress,
  withClusters,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0]';

function settingsOf(cluster: JsonObject): ClusterSettings {
  return mustLoad(withClusters(cluster)).clusters[0]!;
}

function errorsOf(cluster: JsonObject): string[] {
  return faultTexts(load(withClusters(cluster)));
}

function member(port: number, fields: JsonObject = {}): JsonObject {
  return { endpoint: { address: socketAddress('10.0.0.1', port) }, ...fields };
}

function assigned(endpoints: readonly JsonObject[], fields: JsonObject = {}): JsonObject {
  return { name: 'web', load_assignment: { cluster_name: 'web', endpoints, ...fields } };
}

describe('a balancer that goes by hashes', () => {
  it('reads its sizes, its function and what places hosts', () => {
    const ring = settingsOf({
      ...assigned([
        {
          lb_endpoints: [
            member(1, { metadata: { filter_metadata: { 'envoy.lb': { hash_key: 'one' } } } }),
            member(2, { metadata: { filter_metadata: { 'proxy.lb': { hash_key: 2 } } } }),
          ],
        },
      ]),
      lb_policy: 'RING_HASH',
      ring_hash_lb_config: { minimum_ring_size: 7, maximum_ring_size: '9000', hash_function: 'MURMUR_HASH_2' },
      common_lb_config: { consistent_hashing_lb_config: { use_hostname_for_hashing: true } },
    });
    assert.equal(ring.lbPolicy, 'RING_HASH');
    assert.deepEqual(ring.hashing, {
      minimumRingSize: 7,
      maximumRingSize: 9000,
      hashFunction: 'MURMUR_HASH_2',
      maglevTableSize: 65537,
      usesHostname: true,
    });
    assert.deepEqual(
      ring.hosts.map(({ hashKey }) => hashKey),
      ['one', ''],
    );
    const maglev = settingsOf(
      clusterNamed('web', { lb_policy: 'MAGLEV', maglev_lb_config: { table_size: 5_000_011 } }),
    );
    assert.equal(maglev.hashing.maglevTableSize, 5_000_011);
  });

  it('is refused with sizes that no table can have', () => {
    const ring = (fields: JsonObject): JsonObject =>
      clusterNamed('web', { lb_policy: 'RING_HASH', ring_hash_lb_config: fields });
    const maglev = (table_size: number): JsonObject =>
      clusterNamed('web', { lb_policy: 'MAGLEV', maglev_lb_config: { table_size } });
    assert.deepEqual(errorsOf(ring({ minimum_ring_size: 20, maximum_ring_size: 10 })), [
      `${AT}.ring_hash_lb_config: minimum_ring_size 20 exceeds maximum_ring_size 10`,
    ]);
    assert.deepEqual(errorsOf(ring({ minimum_ring_size: 8_388_609 })), [
      `${AT}.ring_hash_lb_config: minimum_ring_size 8388609 exceeds maximum_ring_size 8388608`,
      `${AT}.ring_hash_lb_config.minimum_ring_size: 8388609 exceeds the limit 8388608`,
    ]);
    assert.deepEqual(errorsOf(ring({ maximum_ring_size: 8_388_609 })), [
      `${AT}.ring_hash_lb_config.maximum_ring_size: 8388609 exceeds the limit 8388608`,
    ]);
    for (const size of [0, 1, 4, 65536]) {
      assert.deepEqual(errorsOf(maglev(size)), [`${AT}.maglev_lb_config.table_size: ${size} is not a prime number`]);
    }
    assert.deepEqual(errorsOf(maglev(5_000_012)), [
      `${AT}.maglev_lb_config.table_size: 5000012 exceeds the limit 5000011`,
    ]);
  });
});
