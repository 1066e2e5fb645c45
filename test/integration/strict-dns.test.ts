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
    assert.match(weir.output.stdout + weir.output.stderr, /DNS lookup of web\.test failed, its known hosts stay/);
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
});
