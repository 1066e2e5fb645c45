// Clusters come out of their packing as they went in.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ClusterSnapshot, type HostSnapshot, packClusters, unpackCluster } from '../../../src/snapshot/index.ts';
import { clusterSettings, hostSettings } from '../../support/clusters.ts';

const address = fc.oneof(
  fc.record({ kind: fc.constant('ip' as const), ip: fc.ipV4(), port: fc.nat(65535) }),
  fc.record({ kind: fc.constant('pipe' as const), path: fc.string({ unit: 'binary' }), mode: fc.nat(0o777) }),
);
const place = fc.nat(2 ** 31);
/** Values of which hosts in a row often have the same. */
const few = fc.constantFrom('', 'a', 'b');

const host: fc.Arbitrary<HostSnapshot> = fc
  .record(
    {
      address,
      logicalName: fc.string(),
      connectOrder: fc.array(fc.record({ kind: fc.constant('ip' as const), ip: fc.ipV4(), port: fc.nat(65535) })),
      hostname: few,
      weight: fc.integer({ min: 1, max: 2 }),
      locality: fc.record({ region: few, zone: few, subZone: few }),
      localityWeight: fc.nat(1),
      priority: fc.nat(1),
      canary: fc.boolean(),
      health: fc.constantFrom('healthy', 'degraded'),
      hashKey: few,
      subsetValues: fc.array(fc.record({ key: few, value: few, elements: fc.option(fc.array(few)) })),
      metadata: fc.dictionary(fc.string(), fc.dictionary(fc.string(), fc.integer())),
      check: fc.record({ isDisabled: fc.boolean(), port: fc.nat(65535), hostname: few, address: fc.constant(null) }),
      recordAddress: place,
      statBlock: place,
      outlierBlock: place,
    },
    { requiredKeys: ['address', 'recordAddress', 'statBlock', 'outlierBlock'] },
  )
  // Objects with the usual prototype.
  .map((fields) => JSON.parse(JSON.stringify({ ...hostSettings(fields.address), ...fields })));

const cluster: fc.Arbitrary<ClusterSnapshot> = fc
  .record({
    name: fc.string({ unit: 'grapheme' }),
    hosts: fc.array(host),
    hostLists: place,
    statBlock: place,
    budgetBlock: place,
    sizeBlock: place,
    tlsBlock: place,
    tlsFactoryBlock: place,
    http2Block: place,
    recordAddress: place,
    addedViaApi: fc.boolean(),
    isHealthChecked: fc.boolean(),
  })
  .map(({ name, ...rest }) => ({ ...rest, settings: JSON.parse(JSON.stringify(clusterSettings(name))) }));

test('clusters come out of their packing as they went in, in any order', () => {
  fc.assert(
    fc.property(fc.array(cluster), (clusters) => {
      const packed = packClusters(clusters);
      assert.deepEqual(
        packed.map(({ name, hostCount }) => [name, hostCount]),
        clusters.map(({ settings, hosts }) => [settings.name, hosts.length]),
      );
      const unpacked = packed.toReversed().map(unpackCluster).reverse();
      assert.deepEqual(unpacked, clusters);
    }),
  );
});

test('what hosts in a row have in common is packed once', () => {
  const hosts = Array.from({ length: 10 }, (_, index) => ({
    ...hostSettings({ kind: 'ip', ip: '10.0.0.1', port: index }, { hostname: 'a name of some length' }),
    recordAddress: index,
    statBlock: index,
    outlierBlock: 0,
  }));
  const rest = {
    hostLists: 0,
    statBlock: 0,
    budgetBlock: 0,
    sizeBlock: 0,
    tlsBlock: 0,
    tlsFactoryBlock: 0,
    http2Block: 0,
    recordAddress: 0,
    addedViaApi: false,
    isHealthChecked: false,
  };
  const [packed] = packClusters([{ settings: clusterSettings('web'), hosts, ...rest }]);
  const text = Buffer.from(packed!.bytes).toString();
  assert.equal(text.split('a name of some length').length, 2);
});

test('a large number of clusters lies in several pieces of memory', () => {
  const rest = {
    hosts: [],
    hostLists: 0,
    statBlock: 0,
    budgetBlock: 0,
    sizeBlock: 0,
    tlsBlock: 0,
    tlsFactoryBlock: 0,
    http2Block: 0,
    recordAddress: 0,
    addedViaApi: false,
    isHealthChecked: false,
  };
  const long = 'n'.repeat(100_000);
  const names = Array.from({ length: 30 }, (_, index) => `${index}${long}`);
  const packed = packClusters(names.map((name) => ({ settings: clusterSettings(name), ...rest })));
  assert.deepEqual(
    packed.map((each) => unpackCluster(each).settings.name),
    names,
  );
  assert.ok(new Set(packed.map(({ bytes }) => bytes)).size > 2);
});
