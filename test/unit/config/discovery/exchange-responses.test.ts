// Responses of management servers: what they say of themselves at once, and their resources one by one.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { openChangesResponse, openStateResponse } from '../../../../src/config/exchange.ts';
import { encodeMessage, protoSchema, type RawResource } from '../../../../src/config/index.ts';

const DISCOVERY = 'proxy.service.discovery.v3.';
const CLUSTER_URL = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const WRAPPER_URL = 'type.googleapis.com/envoy.service.discovery.v3.Resource';

function encode(typeName: string, message: object): Uint8Array {
  return encodeMessage(protoSchema().messageType(typeName), message);
}

function cluster(name: string): Uint8Array {
  return encode('proxy.config.cluster.v3.Cluster', { name, connect_timeout: { seconds: 1, nanos: 0 } });
}

function state(fields: object): Uint8Array {
  return encode(`${DISCOVERY}DiscoveryResponse`, { type_url: CLUSTER_URL, ...fields });
}

function changes(fields: object): Uint8Array {
  return encode(`${DISCOVERY}DeltaDiscoveryResponse`, { type_url: CLUSTER_URL, ...fields });
}

function plain({ bytes, ...resource }: RawResource): object {
  return { ...resource, bytes: bytes && Buffer.from(bytes).toString('hex') };
}

const usual = { version: '', ttlMs: undefined, typeUrl: CLUSTER_URL };
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('a response', () => {
  it('says what it is, and has its resources in their order, each time that they are asked for', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.string(), fc.string(), fc.string(), (names, version, nonce, identifier) => {
        const resources = names.map((name) => ({ type_url: CLUSTER_URL, value: cluster(name) }));
        const control_plane = { identifier };
        const response = openStateResponse(state({ version_info: version, nonce, control_plane, resources }));
        const { resources: _each, service, ...head } = response;
        assert.deepEqual(head, { typeUrl: CLUSTER_URL, version, nonce, controlPlane: identifier, removed: [] });
        assert.equal(service?.typeName, 'proxy.config.cluster.v3.Cluster');
        const expected = names.map((name) => ({ ...usual, name, bytes: hex(cluster(name)) }));
        for (let walk = 0; walk < 2; walk += 1) assert.deepEqual([...response.resources].map(plain), expected);
      }),
    );
  });

  it('of changes has versions, lifetimes, heartbeats and what is gone', () => {
    const resource = { type_url: CLUSTER_URL, value: cluster('inner') };
    const response = openChangesResponse(
      changes({
        system_version_info: '7',
        nonce: 'n',
        removed_resources: ['x', 'y'],
        removed_resource_names: [{ name: 'z' }, { name: 'x' }],
        resources: [
          { name: 'inner', version: '1', resource },
          { name: 'other', version: '2', resource, ttl: { seconds: 3, nanos: 0 } },
          { name: 'alive', ttl: { seconds: 3, nanos: 0 } },
          { version: '3', resource },
        ],
      }),
    );
    assert.deepEqual([response.version, response.nonce, response.removed], ['7', 'n', ['x', 'y', 'z']]);
    const bytes = hex(cluster('inner'));
    assert.deepEqual([...response.resources].map(plain), [
      { ...usual, name: 'inner', version: '1', bytes },
      { ...usual, name: 'other', otherName: 'inner', version: '2', ttlMs: 3000, bytes },
      { name: 'alive', version: '', typeUrl: '', ttlMs: 3000, bytes: undefined },
      { ...usual, name: 'inner', version: '3', bytes },
    ]);
  });

  it('of the state may have wrappers around resources', () => {
    const resource = { type_url: CLUSTER_URL, value: cluster('a') };
    const value = encode(`${DISCOVERY}Resource`, { name: 'a', version: '4', resource });
    const { resources } = openStateResponse(state({ resources: [{ type_url: WRAPPER_URL, value }, resource] }));
    const bytes = hex(cluster('a'));
    assert.deepEqual([...resources].map(plain), [
      { ...usual, name: 'a', version: '4', bytes },
      { ...usual, name: 'a', bytes },
    ]);
  });

  it('has resources of other types without names', () => {
    const other = 'type.googleapis.com/envoy.config.listener.v3.Listener';
    const { resources } = openStateResponse(state({ resources: [{ type_url: other, value: cluster('a') }] }));
    assert.deepEqual([...resources].map(plain), [{ ...usual, name: '', typeUrl: other, bytes: hex(cluster('a')) }]);
  });

  it('keeps what is good beside a resource that cannot be read', () => {
    const good = encode(`${DISCOVERY}DiscoveryResponse`, {
      resources: [{ type_url: CLUSTER_URL, value: cluster('a') }],
    });
    // Field 2, three bytes, of which the second says that forty follow.
    const bad = Buffer.from([0x12, 3, 0x12, 40, 0]);
    const head = state({ version_info: '1' });
    for (const open of [openStateResponse, openChangesResponse]) {
      const { resources, typeUrl } = openStateResponse(Buffer.concat([head, bad, good]));
      assert.equal(typeUrl, CLUSTER_URL);
      assert.deepEqual(
        [...resources].map(({ name, typeUrl: type }) => [name, type]),
        [
          ['', ''],
          ['a', CLUSTER_URL],
        ],
      );
      assert.throws(() => open(Buffer.concat([head, Buffer.from([0x12, 40, 0])])), /ends behind the message/);
    }
  });
});
