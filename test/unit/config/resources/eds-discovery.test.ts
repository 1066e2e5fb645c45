import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { FamilyOrder } from '../../../../src/base/address-families.ts';
import {
  type DiscoveredResource,
  type DiscoveredResponse,
  openResponseFile,
  UnknownFieldPolicy,
} from '../../../../src/config/index.ts';
import type { AssignmentSettings, EdsDiscoverySettings } from '../../../../src/snapshot/index.ts';
import {
  assigned,
  clusterErrors,
  clusterSettings,
  faultTexts,
  type JsonObject,
  load,
  member,
  mustLoad,
  withClusters,
} from '../../../support/bootstrap.ts';
import { readAll } from '../../../support/discovered-response.ts';

const AT = 'static_resources.clusters[0]';
const FILE: JsonObject = { path: '/etc/endpoints.yaml' };

function edsCluster(fields: JsonObject = {}, config: JsonObject = { eds_config: { path_config_source: FILE } }) {
  return { name: 'web', type: 'EDS', connect_timeout: '1s', eds_cluster_config: config, ...fields };
}

function discoveryOf(cluster: JsonObject): EdsDiscoverySettings {
  const { discovery, hosts } = clusterSettings(cluster);
  assert.ok(discovery.kind === 'eds');
  assert.deepEqual(hosts, []);
  return discovery;
}

describe('a cluster with endpoints by discovery', () => {
  it('says where they come from, and how they are read', () => {
    const eds_config = {
      path_config_source: { path: 'endpoints.yaml', watched_directory: { path: '/mnt' } },
      initial_fetch_timeout: '3s',
      resource_api_version: 'V3',
    };
    const lb_subset_config = { subset_selectors: [{ keys: ['stage', 'version'] }], default_subset: { zone: 'a' } };
    const order = { happy_eyeballs_config: { first_address_family_version: 'V6', first_address_family_count: 2 } };
    const fields = { lb_subset_config, upstream_connection_options: order };
    assert.deepEqual(discoveryOf(edsCluster(fields, { eds_config, service_name: 'shop' })), {
      kind: 'eds',
      serviceName: 'shop',
      source: {
        origin: { kind: 'file', path: path.resolve('endpoints.yaml'), watchedFolder: '/mnt' },
        resourceGeneration: 'v3',
        initialFetchTimeoutMs: 3000,
      },
      subsetKeys: ['stage', 'version', 'zone'],
      familyOrder: { first: 'v6', firstCount: 2 } satisfies FamilyOrder,
    });
    const { serviceName, source } = discoveryOf(edsCluster({}, { eds_config: { path: '/etc/endpoints.yaml' } }));
    assert.deepEqual([serviceName, source.initialFetchTimeoutMs], ['', 15_000]);
  });

  it('may be named by its cluster type', () => {
    const { type: _type, ...cluster } = edsCluster();
    assert.equal(discoveryOf({ ...cluster, cluster_type: { name: 'envoy.cluster.eds' } }).kind, 'eds');
  });

  it('is refused without a place where they come from, and where this build has no such place', () => {
    assert.deepEqual(clusterErrors(edsCluster({}, {})), [
      `${AT}.eds_cluster_config.eds_config: is required: it says where the endpoints come from`,
    ]);
    const [error] = clusterErrors(edsCluster({ lb_policy: 'CLUSTER_PROVIDED' }));
    assert.match(error!, /CLUSTER_PROVIDED needs type ORIGINAL_DST, not EDS/);
  });

  it('leaves configured members out with a warning, and what they say of the cluster', () => {
    const policy = { overprovisioning_factor: 200, drop_overloads: [] };
    const cluster = edsCluster({ ...assigned([{ lb_endpoints: [member(1)] }], { policy }), name: 'web' });
    const [warning] = faultTexts(load(withClusters(cluster)), 'warning');
    assert.match(warning!, /load_assignment: ignored with type EDS: the endpoints come by discovery/);
    assert.equal(clusterSettings(cluster).overprovisioningFactor, 140);
  });
});

describe('an assignment by discovery', () => {
  const DISCOVERABLE = mustLoad({}).discoverable;

  function open(t: TestContext, resources: readonly JsonObject[], isLocal = false) {
    const type = DISCOVERABLE.assignments(discoveryOf(edsCluster({ lb_subset_config: SUBSETS })), isLocal);
    const typed = resources.map((resource) => ({ '@type': `type.googleapis.com/${type.typeName}`, ...resource }));
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-assignment-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'endpoints.json');
    writeFileSync(file, JSON.stringify({ resources: typed }));
    const opened = openResponseFile(file, type, new UnknownFieldPolicy('reject'), new Set(['web']));
    assert.ok('offered' in opened);
    return opened as DiscoveredResponse<AssignmentSettings>;
  }
  const SUBSETS = { subset_selectors: [{ keys: ['stage'] }] };

  function errorsOf(resource: DiscoveredResource<AssignmentSettings> | undefined): readonly string[] {
    assert.ok(resource !== undefined && !resource.isGood);
    return resource.errors.map((error) => error.replace(/^.*?: /, ''));
  }

  it('has the members and what it says of the cluster as a whole', (t) => {
    const metadata = { filter_metadata: { 'envoy.lb': { stage: 'dev', other: 1 } } };
    const first = member(1, { metadata, load_balancing_weight: 7, health_status: 'DEGRADED' });
    const backup = { priority: 1, lb_endpoints: [{ endpoint_name: 'spare' }] };
    const response = open(t, [
      {
        cluster_name: 'web',
        endpoints: [{ locality: { zone: 'a' }, lb_endpoints: [first, member(1)] }, backup],
        named_endpoints: { spare: member(2).endpoint! },
        policy: {
          overprovisioning_factor: 200,
          weighted_priority_health: true,
          endpoint_stale_after: '5s',
          drop_overloads: [{ category: 'x', drop_percentage: { numerator: 5 } }],
        },
      },
    ]);
    const [resource] = readAll(response);
    assert.ok(resource?.isGood);
    const { hosts, policy, staleAfterMs } = resource.resource;
    const told = hosts.map(({ address, priority, weight, health, locality, subsetValues }) => [
      address.kind === 'ip' && address.port,
      priority,
      weight,
      health,
      locality.zone,
      subsetValues.map(({ key }) => key),
    ]);
    assert.deepEqual(told, [
      [1, 0, 7, 'degraded', 'a', ['stage']],
      [2, 1, 1, 'unknown', '', []],
    ]);
    assert.deepEqual(policy, {
      overprovisioningFactor: 200,
      weightedPriorityHealth: true,
      dropShare: { numerator: 5, denominator: 100 },
      dropCategory: 'x',
    });
    assert.equal(staleAfterMs, 5000);
  });

  it('is refused with field and path', (t) => {
    const cases: readonly (readonly [JsonObject, RegExp])[] = [
      [{ endpoints: [{ lb_endpoints: [{}] }] }, /endpoints\[0\]\.lb_endpoints\[0\]: one of endpoint, endpoint_name/],
      [{ endpoints: [{ priority: 1 }] }, /endpoints: priorities must be contiguous from 0: 1 is used, 0 is not/],
      [{ endpoints: [{ lb_endpoints: [member(1, { load_balancing_weight: 0 })] }] }, /load_balancing_weight/],
      [
        { endpoints: [{ lb_endpoints: [1, 2].map((port) => member(port, { load_balancing_weight: 4_000_000_000 })) }] },
        /the sum of endpoint weights is 8000000000/,
      ],
      [{ endpoints: [{ leds_cluster_locality_config: {} }] }, /leds_cluster_locality_config .*use lb_endpoints/],
      [{ policy: { endpoint_stale_after: '0s' } }, /policy\.endpoint_stale_after/],
      [{ endpoints: [{ lb_endpoints: [{ endpoint: { address: {} } }] }] }, /endpoint\.address/],
    ];
    for (const [fields, expected] of cases) {
      const [error] = errorsOf(readAll(open(t, [{ cluster_name: 'web', ...fields }]))[0]);
      assert.match(error!, expected);
      assert.match(error!, /^resources\[0\]/);
    }
  });

  it('of the local cluster has one priority', (t) => {
    const resource = { cluster_name: 'web', endpoints: [{}, { priority: 1 }] };
    const [error] = errorsOf(readAll(open(t, [resource], true))[0]);
    assert.equal(error, 'resources[0].endpoints[1].priority: 1 is not 0, the only priority of a local cluster');
  });
});
