// Whatever assignments have come before, a cluster is as if the last one had been the first.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { type JsonObject, member } from '../../../../support/bootstrap.ts';
import { EndpointFeed, edsCluster } from '../../../../support/endpoint-feed.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { ManagedClusters } from '../../../../support/managed-clusters.ts';

const GAUGES = ['total', 'healthy', 'degraded', 'excluded'].map((name) => `membership_${name}`);

/** One endpoint, of few that there are: most come again, otherwise than before. */
const ENDPOINT = fc.record({
  port: fc.integer({ min: 1, max: 6 }),
  weight: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  health: fc.constantFrom('UNKNOWN', 'HEALTHY', 'UNHEALTHY', 'DEGRADED', 'DRAINING', 'TIMEOUT'),
  version: fc.option(fc.constantFrom('1', '2'), { nil: undefined }),
  canary: fc.boolean(),
  checkPort: fc.option(fc.integer({ min: 1, max: 2 }), { nil: undefined }),
});

type Endpoint = typeof ENDPOINT extends fc.Arbitrary<infer Each> ? Each : never;

function endpointOf({ port, weight, health, version, canary, checkPort }: Endpoint): JsonObject {
  const lb = { canary, ...(version === undefined ? {} : { version }) };
  const { endpoint } = member(port) as { readonly endpoint: JsonObject };
  return {
    endpoint: { ...endpoint, ...(checkPort === undefined ? {} : { health_check_config: { port_value: checkPort } }) },
    health_status: health,
    metadata: { filter_metadata: { 'envoy.lb': lb } },
    ...(weight === undefined ? {} : { load_balancing_weight: weight }),
  };
}

const LOCALITY = fc.record({
  zone: fc.constantFrom('a', 'b'),
  weight: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  endpoints: fc.array(ENDPOINT, { maxLength: 4 }),
});

const POLICY = fc.constantFrom<JsonObject>(
  {},
  { overprovisioning_factor: 100 },
  { weighted_priority_health: true },
  { drop_overloads: [{ category: 'lb', drop_percentage: { numerator: 5 } }] },
  { drop_overloads: [{ category: 'other', drop_percentage: { numerator: 5 } }] },
);

/** By priority, without gaps. */
const ASSIGNMENT = fc
  .tuple(fc.array(fc.array(LOCALITY, { minLength: 1, maxLength: 2 }), { maxLength: 3 }), POLICY)
  .map(([priorities, policy]): JsonObject => {
    const endpoints = priorities.flatMap((localities, priority) =>
      localities.map(({ zone, weight, endpoints: each }) => ({
        priority,
        locality: { zone },
        lb_endpoints: each.map(endpointOf),
        ...(weight === undefined ? {} : { load_balancing_weight: weight }),
      })),
    );
    return { cluster_name: 'web', endpoints, policy };
  });

const CLUSTERS: readonly JsonObject[] = [
  {},
  { common_lb_config: { locality_weighted_lb_config: {} } },
  { lb_policy: 'RING_HASH' },
  { lb_subset_config: { fallback_policy: 'ANY_ENDPOINT', subset_selectors: [{ keys: ['version'] }] } },
  { outlier_detection: {} },
];

class Served implements Disposable {
  readonly #feed = new EndpointFeed();
  readonly clusters: ManagedClusters;
  /** Confirmations of workers that are still to come. */
  #open = 0;
  #version = 0;

  constructor(fields: JsonObject) {
    this.clusters = new ManagedClusters([edsCluster(fields)], '', NO_FAULTS, this.#feed.discovery);
    void this.clusters.manager.start();
    // A page of records, which the first host of all takes, stays for those that come later.
    this.give({ cluster_name: 'web', endpoints: [{ lb_endpoints: [member(9)] }] });
    this.confirm();
  }

  give(assignment: JsonObject): void {
    this.#version += 1;
    assert.deepEqual(this.#feed.respond('web', `${this.#version}`, [assignment]), []);
  }

  /** Workers use nothing of before any more, as far as they have said by now. */
  confirm(): void {
    for (const { applied } of this.clusters.published.slice(this.#open)) applied();
    this.#open = this.clusters.published.length;
  }

  get state(): object {
    const { manager, stats } = this.clusters;
    const { owner } = stats;
    const cluster = manager.cluster('web')!;
    const hosts = cluster.members().map(({ snapshot, healthFlags }) => {
      const { recordAddress: _record, statBlock: _stats, outlierBlock: _outlier, ...settings } = snapshot;
      return [settings, healthFlags];
    });
    return {
      hosts,
      settings: cluster.settings,
      lists: withoutPlaces(this.clusters.lists()),
      gauges: GAUGES.map((name) => this.clusters.value(`cluster.web.${name}`)),
      cells: owner.cells.usedCells,
      records: owner.recordAllocator.usedRecords,
      bytes: owner.heap.usedBytes,
      waiting: owner.reclaimer.waitingCount,
    };
  }

  [Symbol.dispose](): void {
    this.clusters[Symbol.dispose]();
    this.#feed[Symbol.dispose]();
  }
}

/** Where tables of balancers lie is nobody's business. */
function withoutPlaces(lists: object): object {
  return JSON.parse(JSON.stringify(lists, (key, value: unknown) => (key === 'address' ? undefined : value)));
}

it('a cluster is as its last assignment says, in hosts, lists, stats and memory, whatever came before', () => {
  const steps = fc.array(fc.tuple(ASSIGNMENT, fc.boolean()), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(fc.constantFrom(...CLUSTERS), steps, (fields, assignments) => {
      using changed = new Served(fields);
      for (const [assignment, isConfirmed] of assignments) {
        changed.give(assignment);
        if (isConfirmed) changed.confirm();
      }
      changed.confirm();
      using fresh = new Served(fields);
      fresh.give(assignments.at(-1)![0]);
      fresh.confirm();
      assert.deepEqual(changed.state, fresh.state);
    }),
    { numRuns: 100 },
  );
});
