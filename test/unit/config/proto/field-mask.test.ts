// Masks: their paths, and which messages they fit.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isMaskOf, maskPaths, maskTree } from '../../../../src/config/proto/json-text/field-mask.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';

const schema = protoSchema();
const item = schema.messageType('proxy.admin.v3.ClustersConfigDump.StaticCluster');
const cluster = schema.messageType('proxy.config.cluster.v3.Cluster');

describe('a mask', () => {
  const fits: readonly (readonly [string, boolean])[] = [
    ['cluster', true],
    ['cluster.name,last_updated', true],
    ['cluster.load_assignment.endpoints', true],
    ['cluster.load_assignment.endpoints.priority', false],
    ['cluster.transport_socket.typed_config', true],
    ['cluster.transport_socket.typed_config.sni', false],
    ['cluster.name.first', false],
    ['cluster.', false],
    ['.cluster', false],
    ['clusters', false],
    ['cluster.typed_extension_protocol_options', true],
    ['cluster.typed_extension_protocol_options.a', false],
    ['constructor', false],
    ['cluster,nothing', false],
    [',,', true],
  ];
  for (const [mask, expected] of fits) {
    it(`${mask} ${expected ? 'fits' : 'does not fit'} a cluster of a dump`, () => {
      const contentOf = (_holder: unknown, field: string) => (field === 'cluster' ? cluster : undefined);
      assert.equal(isMaskOf(item, maskPaths(mask), contentOf), expected);
    });
  }

  it('shows all of a field when one path says so, in any order', () => {
    const whole = new Map([['a', 'whole']]);
    assert.deepEqual(maskTree(['a', 'a.b']), whole);
    assert.deepEqual(maskTree(['a.b', 'a']), whole);
    assert.deepEqual(
      maskTree(['a.b', 'a.c.d']),
      new Map([
        [
          'a',
          new Map<string, unknown>([
            ['b', 'whole'],
            ['c', new Map([['d', 'whole']])],
          ]),
        ],
      ]),
    );
  });
});
