// The configuration in use: the messages of resources stay with them, and members are shown as they are now.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FilterConfigs } from '../../../../src/control-plane/filters/filter-configs.ts';
import type { ListenerManager } from '../../../../src/control-plane/listener-manager/listener-manager.ts';
import type { RouteTables } from '../../../../src/control-plane/routes/route-tables.ts';
import type { ScopeSets } from '../../../../src/control-plane/routes/scope-sets.ts';
import type { Secrets } from '../../../../src/control-plane/secrets/secrets.ts';
import { LoadedConfig } from '../../../../src/control-plane/server/loaded-config.ts';
import { HealthFlag } from '../../../../src/wasm/shared-memory.ts';
import { assigned, clusterSettings, member, mustLoad } from '../../../support/bootstrap.ts';
import { ManagedClusters } from '../../../support/managed-clusters.ts';

const OTHERS = {
  listenerManager: { version: '3', dump: () => [] } as unknown as ListenerManager,
  routeTables: { dump: () => [] } as unknown as RouteTables,
  scopeSets: { dump: () => [] } as unknown as ScopeSets,
  secrets: { dump: () => [] } as unknown as Secrets,
  filterConfigs: { dump: () => [] } as unknown as FilterConfigs,
};
const NONE = mustLoad({});

function bytes(text: string): Uint8Array {
  return Buffer.from(text);
}

describe('the configuration in use', () => {
  it('has of each cluster the message that it was put with last, and when', async () => {
    using clusters = new ManagedClusters([clusterSettings(assigned([{ lb_endpoints: [member(1)] }]))]);
    const { manager } = clusters;
    await manager.start();
    const config = new LoadedConfig(NONE, 5, { clusterManager: manager, ...OTHERS });
    const other = (port: number, connectTimeoutMs = 1000) => ({
      ...clusterSettings(assigned([{ lb_endpoints: [member(port)] }])),
      name: 'other',
      statName: 'other',
      connectTimeoutMs,
    });
    const shown = () =>
      config.clusters().resources.map(({ name, message, addedViaApi, version, state }) => {
        return [name, Buffer.from(message).toString(), addedViaApi, version, state];
      });
    manager.put(other(1), 'one', bytes('first'));
    assert.deepEqual(shown().slice(1), [['other', 'first', true, 'one', 'active']]);
    clusters.clock.turn(1000);
    // Taken over by the same cluster.
    manager.put(other(2), 'two', bytes('second'));
    assert.deepEqual(shown().slice(1), [['other', 'second', true, 'two', 'active']]);
    assert.equal(config.clusters().resources[1]!.updatedMs, clusters.clock.wallMs());
    // By another in its place.
    manager.put(other(2, 7), 'three', bytes('third'));
    assert.deepEqual(shown().slice(1), [
      ['other', 'third', true, 'three', 'active'],
      ['other', 'second', true, 'two', 'draining'],
    ]);
    assert.deepEqual(shown()[0], ['web', '', false, '', 'active']);
    assert.deepEqual(
      [config.clusters().version, config.listeners().version, config.bootstrap.updatedMs],
      ['three', '3', 5],
    );
  });

  it('has the members of clusters with their health of now', () => {
    const { clusters, messages } = mustLoad({
      static_resources: {
        clusters: [
          assigned([
            {
              priority: 0,
              locality: { zone: 'a' },
              load_balancing_weight: 4,
              lb_endpoints: [
                member(1, { load_balancing_weight: 3, metadata: { filter_metadata: { x: { y: [1] } } } }),
                member(2, { health_status: 'DEGRADED' }),
                member(3),
              ],
            },
            {
              priority: 1,
              lb_endpoints: [
                {
                  endpoint: {
                    address: { socket_address: { address: '10.0.0.1', port_value: 4 } },
                    health_check_config: { port_value: 9, hostname: 'check' },
                  },
                },
              ],
            },
          ]),
        ],
      },
    });
    using managed = new ManagedClusters();
    managed.manager.addStatic(clusters[0]!, messages.clusters[0]);
    managed.hosts()[2]!.setHealthFlags(HealthFlag.failedOutlierCheck, true);
    const [cluster] = new LoadedConfig(NONE, 0, { clusterManager: managed.manager, ...OTHERS }).endpoints();
    const { name, addedViaApi, overprovisioningFactor, message } = cluster!;
    assert.deepEqual([name, addedViaApi, overprovisioningFactor, message], ['web', false, 140, messages.clusters[0]]);
    const [first, ...others] = cluster!.endpoints();
    assert.deepEqual(first, {
      address: { kind: 'ip', ip: '10.0.0.1', port: 1 },
      hostname: '',
      health: 'HEALTHY',
      weight: 3,
      locality: { region: '', zone: 'a', subZone: '' },
      localityWeight: 4,
      priority: 0,
      metadata: { x: { y: [1] } },
      check: { port: 0, hostname: '' },
    });
    assert.deepEqual(
      others.map(({ health, priority, check }) => [health, priority, check.port, check.hostname]),
      [
        ['DEGRADED', 0, 0, ''],
        ['UNHEALTHY', 0, 0, ''],
        ['HEALTHY', 1, 9, 'check'],
      ],
    );
  });
});
