// Where retries go: hosts that predicates turn down, and priorities that have been tried. A table of policies, each with what the
// hosts of a cluster have been asked one after the other.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type JsonObject, socketAddress } from '../support/bootstrap.ts';
import { bootstrapOf, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { WireClient } from '../support/wire.ts';

/** A host of a priority; what is said of it for balancers. */
interface Host {
  readonly priority?: number;
  readonly lb?: JsonObject;
}

interface Case {
  readonly name: string;
  readonly hosts: readonly Host[];
  readonly retries: number;
  readonly policy: JsonObject;
  /** Of the hosts that were asked, by their numbers. */
  readonly asked: (numbers: readonly number[]) => void;
}

const predicate = (name: string, type: string, fields: JsonObject = {}): JsonObject => ({
  name: `envoy.retry_host_predicates.${name}`,
  typed_config: { '@type': `type.googleapis.com/envoy.extensions.retry.host.${name}.v3.${type}`, ...fields },
});
const PREVIOUS = predicate('previous_hosts', 'PreviousHostsPredicate');
const NO_CANARIES = predicate('omit_canary_hosts', 'OmitCanaryHostsPredicate');
const notWith = (lb: JsonObject): JsonObject =>
  predicate('omit_host_metadata', 'OmitHostMetadataConfig', {
    metadata_match: { filter_metadata: { 'envoy.lb': lb } },
  });
const priorities = (update_frequency: number): JsonObject => ({
  retry_priority: {
    name: 'envoy.retry_priorities.previous_priorities',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig',
      update_frequency,
    },
  },
});
/** Draws enough to find another one. */
const MANY = { host_selection_retry_max_attempts: 100 };

const exactly =
  (...numbers: number[]) =>
  (asked: readonly number[]) =>
    assert.deepEqual(asked, numbers);
const allDiffer = (asked: readonly number[]): void => assert.equal(new Set(asked).size, asked.length);
/** Of the retries. */
const never =
  (number: number) =>
  ([, ...asked]: readonly number[]) =>
    assert.ok(!asked.includes(number), `${asked}`);

const CASES: readonly Case[] = [
  {
    name: 'to each host once, as far as there are others',
    hosts: [{}, {}, {}, {}],
    retries: 3,
    policy: { retry_host_predicate: [PREVIOUS], ...MANY },
    asked: allDiffer,
  },
  {
    name: 'to one that was asked before, rather than to none',
    hosts: [{}, {}],
    retries: 4,
    policy: { retry_host_predicate: [PREVIOUS], ...MANY },
    asked: ([first, second, ...more]) => {
      assert.notEqual(first, second);
      assert.equal(more.length, 3);
    },
  },
  {
    name: 'to no canary',
    hosts: [{ lb: { canary: true } }, {}],
    retries: 6,
    policy: { retry_host_predicate: [NO_CANARIES], ...MANY },
    asked: never(0),
  },
  {
    name: 'to a canary where all are',
    hosts: [{ lb: { canary: true } }],
    retries: 2,
    policy: { retry_host_predicate: [NO_CANARIES], ...MANY },
    asked: exactly(0, 0, 0),
  },
  {
    name: 'to no host of which metadata say all that is named',
    hosts: [{ lb: { disk: 'old', zone: 'a' } }, { lb: { disk: 'old', zone: 'b' } }],
    retries: 6,
    policy: { retry_host_predicate: [notWith({ disk: 'old', zone: 'a' })], ...MANY },
    asked: never(0),
  },
  {
    name: 'to no host that one of several predicates turns down',
    hosts: [{ lb: { canary: true } }, { lb: { disk: 'old' } }, {}],
    retries: 6,
    policy: { retry_host_predicate: [NO_CANARIES, notWith({ disk: 'old' })], ...MANY },
    asked: ([, ...retries]) => assert.deepEqual(new Set(retries), new Set([2])),
  },
  {
    name: 'to the first priority without a word of it',
    hosts: [{}, { priority: 1 }],
    retries: 3,
    policy: {},
    asked: exactly(0, 0, 0, 0),
  },
  {
    name: 'to priorities that have not been tried, and anew when all have',
    hosts: [{}, { priority: 1 }],
    retries: 5,
    policy: priorities(1),
    asked: exactly(0, 1, 0, 1, 0, 1),
  },
  {
    name: 'to the third when two have been tried',
    hosts: [{}, { priority: 1 }, { priority: 2 }],
    retries: 4,
    policy: priorities(1),
    asked: exactly(0, 1, 2, 0, 1),
  },
  {
    name: 'to another priority after as many tries as are said',
    hosts: [{}, { priority: 1 }],
    retries: 7,
    policy: priorities(2),
    asked: exactly(0, 0, 1, 1, 0, 0, 1, 1),
  },
  {
    name: 'to other hosts of other priorities, where both are said',
    hosts: [{}, {}, { priority: 1 }, { priority: 1 }],
    retries: 3,
    policy: { ...priorities(2), retry_host_predicate: [PREVIOUS], ...MANY },
    asked: (asked) => {
      assert.deepEqual(new Set(asked.slice(0, 2)), new Set([0, 1]));
      assert.deepEqual(new Set(asked.slice(2)), new Set([2, 3]));
    },
  },
];

describe('retries go', () => {
  const servers: Server[] = [];
  let ports: number[] = [];
  let asked: number[] = [];
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let client: WireClient;

  async function listen(number: number): Promise<number> {
    const server = createServer((_request, response) => {
      asked.push(number);
      response.writeHead(503, { 'content-length': '0' }).end();
    });
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  }

  function clusterOf({ hosts }: Case, index: number): JsonObject {
    const endpoints = hosts.map(({ priority = 0, lb = {} }, number) => ({
      priority,
      lb_endpoints: [
        {
          endpoint: { address: socketAddress('127.0.0.1', ports[number]!) },
          metadata: { filter_metadata: { 'envoy.lb': lb } },
        },
      ],
    }));
    const name = `cluster${index}`;
    const circuit_breakers = { thresholds: [{ max_retries: 100 }] };
    return { name, circuit_breakers, load_assignment: { cluster_name: name, endpoints } };
  }

  function routeOf({ policy, retries }: Case, index: number): JsonObject {
    const retry_back_off = { base_interval: '0.001s', max_interval: '0.001s' };
    const retry_policy = { retry_on: '5xx', num_retries: retries, retry_back_off, ...policy };
    return routeTo(`/${index}/`, {}, { route: { cluster: `cluster${index}`, timeout: '0s', retry_policy } });
  }

  before(async () => {
    ports = await Promise.all([0, 1, 2, 3].map(listen));
    proxy = await createProxy(bootstrapOf([filteredListener([], CASES.map(routeOf))], CASES.map(clusterOf)));
    client = new WireClient(proxy.listeners.get('main')!.port);
  });

  after(async () => {
    client?.close();
    await proxy?.close();
    for (const server of servers) server.close();
  });

  for (const [index, { name, retries, asked: check }] of CASES.entries()) {
    it(name, async () => {
      asked = [];
      assert.equal((await client.write(`GET /${index}/ HTTP/1.1\r\nhost: a\r\n\r\n`).response()).status, 503);
      assert.equal(asked.length, retries + 1);
      check(asked);
    });
  }
});
