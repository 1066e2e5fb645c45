// Which transport socket match a host comes under, and how many have; also through the program.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TransportSocketMatcher } from '../../../../src/control-plane/cluster-manager/transport-socket-matcher.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
import {
  assigned,
  clusterErrors,
  clusterSettings,
  faultTexts,
  load,
  member,
  withClusters,
} from '../../../support/bootstrap.ts';
import { statsFixture } from '../../../support/stats.ts';
import { startWeir } from '../../../support/weir-process.ts';

const AT = 'static_resources.clusters[0].transport_socket_matches';
const KEY = 'envoy.transport_socket_match';

/** A member whose endpoint says this of itself. */
function saying(port: number, fields: JsonObject, namespace = KEY): JsonObject {
  return member(port, { metadata: { filter_metadata: { [namespace]: fields } } });
}

function cluster(members: readonly JsonObject[], ...matches: readonly JsonObject[]): JsonObject {
  return { ...assigned([{ lb_endpoints: members }]), transport_socket_matches: matches };
}

/** Names of the matches of all members. */
function assign(...from: Parameters<typeof cluster>): string[] {
  const { hosts, transportSocketMatches } = clusterSettings(cluster(...from));
  const matcher = new TransportSocketMatcher(statsFixture().store, 'web', transportSocketMatches!);
  return hosts.map((host) => matcher.assign(host));
}

test('hosts are counted by their match under the name of the cluster', () => {
  const { hosts, transportSocketMatches } = clusterSettings(
    cluster([saying(1, { a: 1 }), saying(2, { a: 1 }), member(3)], { name: 'one:1', match: { a: 1 } }),
  );
  const { store } = statsFixture();
  const matcher = new TransportSocketMatcher(store, 'web', transportSocketMatches!);
  for (const host of hosts) matcher.assign(host);
  const counts = ['one_1', 'default'].map((name) =>
    store.value(`cluster.web.transport_socket_match.${name}.total_match_count`),
  );
  assert.deepEqual(counts, [2, 1]);
});

describe('a host comes under', () => {
  test('the first match of which its metadata says all', () => {
    const members = [saying(1, { a: 1, b: 'x' }), saying(2, { a: 1 }), saying(3, { b: 'x' }), saying(4, { a: 2 })];
    const matches = [
      { name: 'both', match: { a: 1, b: 'x' } },
      { name: 'one', match: { a: 1 } },
      { name: 'late', match: { a: 1 } },
    ];
    assert.deepEqual(assign(members, ...matches), ['both', 'one', 'default', 'default']);
  });

  test('a match that asks nothing, whatever it says, and the rest do not count', () => {
    const matches = [{ name: 'all' }, { name: 'never', match: { a: 1 } }];
    assert.deepEqual(assign([saying(1, { a: 1 }), member(2)], ...matches), ['all', 'all']);
  });

  test('no match by values that are equal in part, of another kind, or in another namespace', () => {
    const match = { name: 'list', match: { a: ['x', 'y'] } };
    const members = [saying(1, { a: 'x' }), saying(2, { a: ['y', 'x'] }), saying(3, { a: ['x', 'y'] }, 'envoy.lb')];
    assert.deepEqual(assign(members, match), ['default', 'default', 'default']);
    assert.deepEqual(assign([saying(1, { a: '1' })], { name: 'number', match: { a: 1 } }), ['default']);
  });

  test('a match by objects and lists that are equal as a whole', () => {
    const value = { a: { x: [1, true], y: null } };
    assert.deepEqual(assign([saying(1, { a: { y: null, x: [1, true] } })], { name: 'deep', match: value }), ['deep']);
  });

  test('what the canonical namespace says, where both are there', () => {
    const both = { filter_metadata: { [KEY]: { a: 1 }, 'proxy.transport_socket_match': { a: 2 } } };
    const members = [member(1, { metadata: both }), saying(2, { a: 2 }, 'proxy.transport_socket_match')];
    assert.deepEqual(assign(members, { name: 'one', match: { a: 1 } }, { name: 'two', match: { a: 2 } }), [
      'two',
      'two',
    ]);
  });
});

test('a match needs a name, and may ask for plain TCP alone', () => {
  const raw = { name: 'envoy.transport_sockets.raw_buffer' };
  assert.deepEqual(clusterErrors(cluster([member(1)], { name: 'plain', transport_socket: raw })), []);
  const errors = clusterErrors(
    cluster(
      [member(1)],
      { transport_socket: raw },
      { name: 'x', transport_socket: { name: 'envoy.transport_sockets.alts' } },
    ),
  );
  assert.equal(errors.length, 2, errors.join('\n'));
  assert.ok(errors.some((error) => error.startsWith(`${AT}[0].name: `)));
  assert.ok(
    errors.some((error) => error.startsWith(`${AT}[1].transport_socket`) && error.includes('transport_sockets.alts')),
  );
});

test('a cluster without matches has none', () => {
  assert.equal('transportSocketMatches' in clusterSettings(assigned([])), false);
  assert.deepEqual(faultTexts(load(withClusters(cluster([], { name: 'x' }))), 'warning'), []);
});

test('hosts are counted by their match, and can be seen in the statistics', async () => {
  const members = [saying(1, { a: 1 }), saying(2, { a: 1 }), member(3)];
  const configYaml = JSON.stringify({
    admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
    ...withClusters(cluster(members, { name: 'one', match: { a: 1 } }, { name: 'none', match: { a: 3 } })),
  });
  await using weir = await startWeir({ configYaml });
  for (const [name, count] of [
    ['one', 2],
    ['none', 0],
    ['default', 1],
  ] as const) {
    await weir.untilStat(`cluster.web.transport_socket_match.${name}.total_match_count`, count);
  }
});
