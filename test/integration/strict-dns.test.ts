// STRICT_DNS in the real program: localhost by its name, and a name whose addresses change while it serves.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AddressedServers } from '../support/addressed-servers.ts';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { DnsServer } from '../support/dns-server.ts';
import { startEchoUpstream } from '../support/echo-upstream.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

/** JSON is YAML as well. */
function bootstrap(cluster: JsonObject): string {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
  const filter = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  return JSON.stringify({
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: {
      listeners: [listenerWith([filter], { address: socketAddress('127.0.0.1', 0) })],
      clusters: [{ name: 'web', type: 'STRICT_DNS', dns_lookup_family: 'V4_ONLY', ...cluster }],
    },
  });
}

function assignment(name: string, port: number): JsonObject {
  const endpoint = { endpoint: { address: socketAddress(name, port) } };
  return { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] };
}

async function urlOf(weir: WeirProcess): Promise<string> {
  return `http://127.0.0.1:${(await weir.listeners()).get('main')!.port}/`;
}

describe('STRICT_DNS', () => {
  it('serves localhost from the first request on, without asking a server', async () => {
    await using upstream = await startEchoUpstream('a');
    // Looked up once only, so that the count below is one however long the test takes.
    const configYaml = bootstrap({
      dns_refresh_rate: '3600s',
      load_assignment: assignment('localhost', upstream.port),
    });
    await using weir = await startWeir({ configYaml });
    const response = await fetch(await urlOf(weir));
    assert.equal(response.status, 200);
    await response.text();
    assert.match(
      await weir.admin('/clusters'),
      new RegExp(`^web::127\\.0\\.0\\.1:${upstream.port}::hostname::localhost$`, 'm'),
    );
    assert.equal(await weir.stat('cluster.web.update_success'), 1);
    assert.equal(await weir.stat('cluster.web.membership_total'), 1);
  });

  it('asks once for what is good for longer than a timer of the system can wait', async () => {
    await using dns = await DnsServer.start();
    const monthSeconds = 30 * 24 * 60 * 60;
    dns.set('month.test', ['127.0.0.2'], monthSeconds);
    dns.set('rate.test', ['127.0.0.2']);
    dns.set('often.test', ['127.0.0.2']);
    // Above 2^31 - 1 it means nothing (RFC 2181 section 8), and the rate counts.
    dns.set('nonsense.test', ['127.0.0.2'], 2 ** 32 - 1);
    const resolvers = { dns_resolution_config: { resolvers: [socketAddress('127.0.0.1', dns.port)] } };
    const named = (name: string, rate: string, respectTtl: boolean): JsonObject => ({
      ...{
        name,
        type: 'STRICT_DNS',
        dns_lookup_family: 'V4_ONLY',
        dns_refresh_rate: rate,
        respect_dns_ttl: respectTtl,
      },
      ...{ ...resolvers, load_assignment: assignment(`${name}.test`, 80) },
    });
    const clusters = [
      named('month', '0.02s', true),
      named('rate', `${monthSeconds}s`, false),
      named('nonsense', `${monthSeconds}s`, true),
      named('often', '0.02s', false),
    ];
    const admin = { address: socketAddress('127.0.0.1', 0) };
    const configYaml = JSON.stringify({ admin, static_resources: { clusters } });
    await using weir = await startWeir({ configYaml });
    const attempts = (name: string): Promise<number | undefined> => weir.stat(`cluster.${name}.update_attempt`);
    await untilEqual(true, async () => (await attempts('often'))! > 5, 'six lookups of another name');
    for (const name of ['month', 'rate', 'nonsense']) assert.equal(await attempts(name), 1, name);
  });

  it('follows a name with two workers, fails no request, and keeps what it knows while the server fails', async () => {
    await using dns = await DnsServer.start();
    await using servers = await AddressedServers.start(['127.0.0.2', '127.0.0.3', '127.0.0.4']);
    dns.set('web.test', ['127.0.0.2']);
    const configYaml = bootstrap({
      dns_refresh_rate: '0.02s',
      dns_resolution_config: { resolvers: [socketAddress('127.0.0.1', dns.port)] },
      load_assignment: assignment('web.test', servers.port),
    });
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    const url = await urlOf(weir);
    const ask = async (): Promise<string> => {
      const response = await fetch(url);
      assert.equal(response.status, 200);
      return await response.text();
    };
    assert.equal(await ask(), '127.0.0.2');
    for (const ips of [['127.0.0.3'], ['127.0.0.3', '127.0.0.4'], ['127.0.0.2', '127.0.0.4'], ['127.0.0.4']]) {
      dns.set('web.test', ips);
      const seen = new Set<string>();
      const hasTaken = async (): Promise<boolean> => {
        seen.add(await ask());
        return ips.every((ip) => seen.has(ip)) && (await weir.stat('cluster.web.membership_total')) === ips.length;
      };
      await untilEqual(true, hasTaken, `taking over ${ips}`);
      // The second worker may be a moment behind.
      const isSettled = async (): Promise<boolean> =>
        (await Promise.all(Array.from({ length: 8 }, ask))).every((ip) => ips.includes(ip));
      await untilEqual(true, isSettled, `asking none but ${ips}`);
    }
    dns.fail('REFUSED');
    const fails = async (): Promise<boolean> => ((await weir.stat('cluster.web.update_failure')) ?? 0) > 2;
    await untilEqual(true, fails, 'a third failure');
    assert.equal(await ask(), '127.0.0.4');
    assert.match(
      weir.output.stdout + weir.output.stderr,
      /DNS lookup of web\.test for cluster web failed, its known hosts stay/,
    );
  });

  it('goes live although the name cannot be looked up, answers 503, and stops at once', async () => {
    await using dns = await DnsServer.start();
    dns.fail('REFUSED');
    const configYaml = bootstrap({
      dns_resolution_config: { resolvers: [socketAddress('127.0.0.1', dns.port)] },
      load_assignment: assignment('web.test', 80),
    });
    await using weir = await startWeir({ configYaml });
    const response = await fetch(await urlOf(weir));
    assert.equal(response.status, 503);
    assert.equal(await response.text(), 'no healthy upstream');
    assert.equal((await weir.stop()).code, 0);
  });

  /** What servers do instead of an answer, and what a cluster makes of it. */
  const bad = {
    silent: { tamper: (): readonly Buffer[] => [], isFailure: true },
    garbage: {
      tamper: (answer: Buffer): readonly Buffer[] => [Buffer.alloc(400, answer.subarray(0, 2))],
      isFailure: true,
    },
    cut: { tamper: (answer: Buffer): readonly Buffer[] => [answer.subarray(0, -3)], isFailure: true },
    loop: { alias: ['a.test', 'loop.test'], isFailure: true },
    // There is an answer: the name has no addresses.
    unknown: { isFailure: false },
  } as const;

  it('serves beside names whose servers say nothing, garbage, half an answer, a loop, no such name, or 500 addresses', async (t) => {
    const servers = new Map<string, DnsServer>();
    const add = async (name: string): Promise<DnsServer> => {
      const dns = await DnsServer.start();
      t.after(() => dns.close());
      servers.set(name, dns);
      return dns;
    };
    await using upstream = await startEchoUpstream('a');
    for (const [name, server] of Object.entries(bad)) {
      const dns = await add(name);
      if (name !== 'unknown') dns.set(`${name}.test`, ['127.0.0.1']);
      if ('tamper' in server) dns.tamper(server.tamper);
      if (!('alias' in server)) continue;
      const [first, second] = server.alias;
      dns.alias(second, first);
      dns.alias(first, second);
    }
    (await add('good')).set('good.test', ['127.0.0.1']);
    const many = Array.from({ length: 500 }, (_, index) => `127.0.${4 + (index >> 8)}.${index & 255}`);
    (await add('many')).set('many.test', many);
    const type = 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig';
    const clusters = [...servers].map(([name, dns]) => ({
      name,
      type: 'STRICT_DNS',
      dns_lookup_family: 'V4_ONLY',
      dns_refresh_rate: '0.05s',
      typed_dns_resolver_config: {
        name: 'cares',
        typed_config: {
          '@type': type,
          resolvers: [socketAddress('127.0.0.1', dns.port)],
          query_timeout_seconds: 1,
          query_tries: 1,
        },
      },
      load_assignment: assignment(`${name}.test`, upstream.port),
    }));
    const routes = [...servers.keys()].map((name) => ({ match: { prefix: `/${name}` }, route: { cluster: name } }));
    const filter = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
    const configYaml = JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: {
        listeners: [listenerWith([filter], { address: socketAddress('127.0.0.1', 0) })],
        clusters,
      },
    });
    await using weir = await startWeir({ configYaml });
    const url = await urlOf(weir);
    const statusOf = async (name: string): Promise<number> => {
      const response = await fetch(`${url}${name}`);
      await response.text();
      return response.status;
    };
    const isAbove = (stat: string, least: number): Promise<void> =>
      untilEqual(true, async () => ((await weir.stat(stat)) ?? 0) > least, `${stat} above ${least}`);
    assert.equal(await statusOf('good'), 200);
    await weir.untilStat('cluster.many.membership_total', 500);
    for (const [name, { isFailure }] of Object.entries(bad)) {
      // They are asked again, and again in vain.
      await isAbove(`cluster.${name}.${isFailure ? 'update_failure' : 'update_success'}`, 1);
      if (isFailure) assert.equal(await weir.stat(`cluster.${name}.update_success`), 0, name);
      assert.equal(await weir.stat(`cluster.${name}.membership_total`), 0, name);
      assert.equal(await statusOf(name), 503, name);
    }
    for (const [name, dns] of servers) {
      if (name === 'good' || name === 'many') continue;
      dns.tamper(undefined);
      dns.set(`${name}.test`, ['127.0.0.1']);
      if (name === 'loop') dns.unalias('loop.test');
      await weir.untilStat(`cluster.${name}.membership_total`, 1);
      await untilEqual(200, () => statusOf(name), `the answer of ${name}`);
    }
    assert.equal((await weir.stop()).code, 0);
  });
});
