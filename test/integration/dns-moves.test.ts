// Hosts that come and go in DNS, in the real program: where requests go meanwhile, by zones and by hashes.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AddressedServers } from '../support/addressed-servers.ts';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { DnsServer } from '../support/dns-server.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);

/** Of a cluster whose members are looked up again and again. */
function lookedUp(dns: DnsServer): JsonObject {
  return {
    type: 'STRICT_DNS',
    dns_lookup_family: 'V4_ONLY',
    dns_refresh_rate: '0.02s',
    dns_resolution_config: { resolvers: [socketAddress('127.0.0.1', dns.port)] },
  };
}

function forwarding(clusters: readonly JsonObject[], route: JsonObject, fields: JsonObject = {}): string {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web', ...route } }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const listeners = [listenerWith([manager], { address: ANY_PORT })];
  return JSON.stringify({ admin: { address: ANY_PORT }, static_resources: { listeners, clusters }, ...fields });
}

/** Requests one behind the other without waiting, as a round trip takes long on a crowded machine. */
const AT_ONCE = 50;

/** The addresses of the hosts that answer requests with these headers. */
async function ask(client: WireClient, headers: readonly string[]): Promise<readonly string[]> {
  const hosts: string[] = [];
  for (let first = 0; first < headers.length; first += AT_ONCE) {
    const some = headers.slice(first, first + AT_ONCE);
    client.write(some.map((header) => `GET / HTTP/1.1\r\nhost: h\r\n${header}\r\n`).join(''));
    for (const _ of some) {
      const { status, body } = await client.response();
      assert.equal(status, 200);
      hosts.push(body);
    }
  }
  return hosts;
}

describe('a zone that loses its hosts one by one', () => {
  const ROUTING = 'cluster.web.lb_zone_routing_';
  const REQUESTS = 400;
  const here = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4'];
  const there = ['127.0.2.1', '127.0.2.2', '127.0.2.3', '127.0.2.4'];

  test('drains over to the other, by as much as its hosts cannot take, and fills again', async (t) => {
    await using dns = await DnsServer.start();
    await using servers = await AddressedServers.start([...here, ...there]);
    dns.set('here.test', here);
    dns.set('there.test', there);
    const localities = (address: (zone: string) => JsonObject): JsonObject[] =>
      ['here', 'there'].map((zone) => ({
        locality: { zone },
        lb_endpoints: [{ endpoint: { address: address(zone) } }],
      }));
    const assignment = (name: string, address: (zone: string) => JsonObject): JsonObject => ({
      name,
      load_assignment: { cluster_name: name, endpoints: localities(address) },
    });
    // One proxy in each of the zones: half of all requests come from here.
    const configYaml = forwarding(
      [
        {
          ...assignment('web', (zone) => socketAddress(`${zone}.test`, servers.port)),
          ...lookedUp(dns),
          common_lb_config: { zone_aware_lb_config: { min_cluster_size: 2 } },
        },
        assignment('proxies', (zone) => socketAddress('127.0.0.1', zone.length)),
      ],
      {},
      { node: { locality: { zone: 'here' } }, cluster_manager: { local_cluster_name: 'proxies' } },
    );
    await using weir = await startWeir({ configYaml });
    // One connection, hence one worker: its upstream connections to a host are closed when it knows that the host has left.
    const client = new WireClient((await weir.listeners()).get('main')!.port);
    t.after(() => client.close());
    const stat = async (name: string): Promise<number> => (await weir.stat(`${ROUTING}${name}`)) ?? 0;
    const routed = async (): Promise<number[]> => [
      await stat('all_directly'),
      await stat('sampled'),
      await stat('cross_zone'),
    ];
    /** So many requests: how many stayed, and what was counted of how they were routed. */
    const round = async (): Promise<{ stayed: number; counts: readonly number[] }> => {
      const before = await routed();
      const hosts = await ask(client, new Array<string>(REQUESTS).fill(''));
      const stayed = hosts.filter((host) => here.includes(host)).length;
      const counts = (await routed()).map((count, at) => count - before[at]!);
      return { stayed, counts };
    };

    // With as many hosts here as there, everything stays.
    assert.deepEqual(await round(), { stayed: REQUESTS, counts: [REQUESTS, 0, 0] });
    for (const left of [3, 2, 1]) {
      const gone = here[left]!;
      assert.ok(servers.connections(gone) > 0, `${gone} is in use`);
      dns.set('here.test', here.slice(0, left));
      await untilEqual(0, () => servers.connections(gone), `connections to ${gone}`);
      const { stayed, counts } = await round();
      // What the hosts here are of all, over the half of the requests that comes from here.
      const share = left / (left + there.length) / 0.5;
      const deviation = Math.sqrt(REQUESTS * share * (1 - share));
      assert.ok(Math.abs(stayed - REQUESTS * share) < 6 * deviation, `${stayed} stayed with ${left} hosts`);
      assert.deepEqual(counts, [0, stayed, REQUESTS - stayed]);
    }
    dns.set('here.test', []);
    await untilEqual(0, () => servers.connections(here[0]!), 'connections to the last one');
    assert.equal((await round()).stayed, 0);

    dns.set('here.test', here);
    const fills = async (): Promise<boolean> => {
      const hosts = await ask(client, new Array<string>(8).fill(''));
      return here.every((ip) => hosts.includes(ip));
    };
    await untilEqual(true, fills, 'requests to all of them');
    assert.deepEqual(await round(), { stayed: REQUESTS, counts: [REQUESTS, 0, 0] });
    assert.equal(await weir.stat('cluster.web.lb_local_cluster_not_ok'), 0);
  });
});

describe('keys of users', () => {
  const IPS = ['127.0.3.1', '127.0.3.2', '127.0.3.3', '127.0.3.4'];
  const USERS = Array.from({ length: 40 }, (_, user) => `x-user: ${user}\r\n`);
  const policies = [
    // Three entries for each host, be there three of them or four: none but the keys of a host that leaves can move.
    { lb_policy: 'RING_HASH', ring_hash_lb_config: { minimum_ring_size: 9 }, mostOthers: 0 },
    { lb_policy: 'MAGLEV', mostOthers: 6 },
  ] as const;
  for (const { mostOthers, ...fields } of policies) {
    test(`keep their hosts in a table of ${fields.lb_policy} while others come and go, in both workers`, async (t) => {
      await using dns = await DnsServer.start();
      await using servers = await AddressedServers.start(IPS);
      dns.set('web.test', IPS);
      const lb_endpoints = [{ endpoint: { address: socketAddress('web.test', servers.port) } }];
      const configYaml = forwarding(
        [
          {
            name: 'web',
            ...lookedUp(dns),
            ...fields,
            load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints }] },
          },
        ],
        { hash_policy: [{ header: { header_name: 'x-user' } }] },
      );
      await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
      const { port } = (await weir.listeners()).get('main')!;
      // Each stays with one worker for good; that all are of one worker happens once in 128 times.
      const clients = Array.from({ length: 8 }, () => new WireClient(port));
      t.after(() => {
        for (const client of clients) client.close();
      });
      const hostsOf = (client: WireClient): Promise<readonly string[]> => ask(client, USERS);
      const onEach = async (check: (client: WireClient) => Promise<void>): Promise<void> => {
        await Promise.all(clients.map(check));
      };
      const before = await hostsOf(clients[0]!);
      await onEach(async (client) => assert.deepEqual(await hostsOf(client), before));
      assert.ok(new Set(before).size > 1);
      for (const gone of new Set(before)) {
        dns.set(
          'web.test',
          IPS.filter((ip) => ip !== gone),
        );
        await onEach(async (client) => {
          let without: readonly string[] = [];
          const isLeftOut = async (): Promise<boolean> => {
            without = await hostsOf(client);
            return !without.includes(gone);
          };
          await untilEqual(true, isLeftOut, `a table without ${gone}`);
          const others = before.filter((host, user) => host !== gone && host !== without[user]).length;
          assert.ok(others <= mostOthers, `${others} users of others have moved`);
        });
        dns.set('web.test', IPS);
        await onEach(async (client) => {
          const isBack = async (): Promise<boolean> => (await hostsOf(client)).join() === before.join();
          await untilEqual(true, isBack, `the first table again, with ${gone}`);
        });
      }
    });
  }
});
