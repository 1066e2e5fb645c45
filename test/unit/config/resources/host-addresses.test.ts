// Endpoints with several addresses: the order in which they are tried, and what cannot stand beside what.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  assigned,
  clusterErrors,
  clusterSettings,
  faultTexts,
  type Json,
  type JsonObject,
  load,
  socketAddress,
  withClusters,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0].load_assignment.endpoints[0].lb_endpoints[0].endpoint';

function endpoint(address: Json, others: readonly Json[], fields: JsonObject = {}): JsonObject {
  const additional_addresses = others.map((other) => ({ address: other }));
  return { ...assigned([{ lb_endpoints: [{ endpoint: { address, additional_addresses } }] }]), ...fields };
}

const SEVERAL = endpoint(socketAddress('10.0.0.1', 80), [
  socketAddress('10.0.0.2', 81),
  socketAddress('::1', 82),
  socketAddress('::2', 83),
]);

function order(cluster: JsonObject, config?: JsonObject): string[] | undefined {
  const upstream_connection_options = config === undefined ? {} : { happy_eyeballs_config: config };
  const [host] = clusterSettings({ ...cluster, upstream_connection_options }).hosts;
  return host!.connectOrder?.map(({ ip, port }) => `${ip} ${port}`);
}

describe('an endpoint', () => {
  it('has one address by default', () => {
    assert.equal(order(endpoint(socketAddress('10.0.0.1', 80), [])), undefined);
  });

  it('has further ones, tried by families in turn', () => {
    const byDefault = ['10.0.0.1 80', '::1 82', '10.0.0.2 81', '::2 83'];
    assert.deepEqual(order(SEVERAL), byDefault);
    assert.deepEqual(order(SEVERAL, {}), byDefault);
    assert.deepEqual(order(SEVERAL, { first_address_family_version: 'DEFAULT' }), byDefault);
    const [host] = clusterSettings(SEVERAL).hosts;
    assert.deepEqual(host!.address, { kind: 'ip', ip: '10.0.0.1', port: 80 });
  });

  it('is tried as its cluster says', () => {
    assert.deepEqual(order(SEVERAL, { first_address_family_version: 'V6', first_address_family_count: 2 }), [
      '::1 82',
      '::2 83',
      '10.0.0.1 80',
      '10.0.0.2 81',
    ]);
    assert.deepEqual(order(SEVERAL, { first_address_family_version: 'V4', first_address_family_count: 5 }), [
      '10.0.0.1 80',
      '10.0.0.2 81',
      '::1 82',
      '::2 83',
    ]);
  });

  it('takes no unix socket among several addresses, and no names', () => {
    const pipe = { pipe: { path: '/run/a' } };
    assert.deepEqual(clusterErrors(endpoint(socketAddress('10.0.0.1', 80), [pipe])), [
      `${AT}.additional_addresses[0].address.pipe: only an IP address can stand beside others`,
    ]);
    assert.deepEqual(clusterErrors(endpoint(pipe, [socketAddress('10.0.0.1', 80)])), [
      `${AT}.additional_addresses: a unix socket has no addresses beside it`,
    ]);
    const [error] = clusterErrors(endpoint(socketAddress('10.0.0.1', 80), [socketAddress('b.test', 80)]));
    assert.match(error!, /additional_addresses\[0\]\.address\.socket_address\.address: "b\.test" is not an IP address/);
    const upstream_connection_options = { happy_eyeballs_config: { first_address_family_count: 0 } };
    assert.equal(clusterErrors({ ...SEVERAL, upstream_connection_options }).length, 1);
  });

  it('has those of DNS where names are looked up', () => {
    const cluster = endpoint(socketAddress('a.test', 80), [socketAddress('b.test', 80)], { type: 'STRICT_DNS' });
    assert.deepEqual(faultTexts(load(withClusters(cluster)), 'warning'), [
      `${AT}.additional_addresses: ignored without type STATIC: DNS says which addresses there are`,
    ]);
  });

  it('says by its cluster in which order those of DNS are tried', () => {
    const happy_eyeballs_config = { first_address_family_version: 'V6', first_address_family_count: 2 };
    const upstream_connection_options = { happy_eyeballs_config };
    const hosts = [socketAddress('a.test', 80)];
    const { discovery } = clusterSettings({ name: 'web', type: 'LOGICAL_DNS', hosts, upstream_connection_options });
    assert.ok(discovery.kind === 'logical-dns');
    assert.deepEqual(discovery.familyOrder, { first: 'v6', firstCount: 2 });
  });
});
