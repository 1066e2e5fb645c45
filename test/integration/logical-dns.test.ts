// LOGICAL_DNS in the real program: one member, new connections to the address of the moment, old ones as they were.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { listenerWith, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { DnsServer } from '../support/dns-server.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

/** Servers on several loopback addresses and one port; each answers everything with its address. */
async function startServers(ips: readonly string[]): Promise<{ port: number; servers: Server[] }> {
  const servers: Server[] = [];
  let port = 0;
  for (const ip of ips) {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', () => socket.write(ip));
    });
    server.listen(port, ip);
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
    servers.push(server);
  }
  return { port, servers };
}

async function startProxy(dns: DnsServer, port: number): Promise<WeirProcess> {
  const configYaml = JSON.stringify({
    admin: { address: socketAddress('127.0.0.1', 0) },
    dns_resolution_config: { resolvers: [socketAddress('127.0.0.1', dns.port)] },
    static_resources: {
      listeners: [listenerWith([tcpFilter({ cluster: 'web' })], { address: socketAddress('127.0.0.1', 0) })],
      clusters: [
        {
          name: 'web',
          type: 'LOGICAL_DNS',
          dns_lookup_family: 'V4_ONLY',
          dns_refresh_rate: '0.02s',
          use_tcp_for_dns_lookups: true,
          hosts: [socketAddress('web.test.', port)],
        },
      ],
    },
  });
  return await startWeir({ configYaml });
}

async function ask(client: Socket): Promise<string> {
  client.write('?');
  const [answer] = (await once(client, 'data')) as [Buffer];
  return answer.toString();
}

describe('LOGICAL_DNS', () => {
  it('connects to the address of the moment, and leaves connections to an older one alone', async () => {
    await using dns = await DnsServer.start();
    const { port, servers } = await startServers(['127.0.0.2', '127.0.0.3']);
    dns.set('web.test', ['127.0.0.2', '127.0.0.3']);
    await using weir = await startProxy(dns, port);
    const listener = (await weir.listeners()).get('main')!.port;
    const old = connect(listener, '127.0.0.1');
    assert.equal(await ask(old), '127.0.0.2');
    dns.set('web.test', ['127.0.0.3']);
    const askAnew = async (): Promise<string> => {
      const client = connect(listener, '127.0.0.1');
      const answer = await ask(client);
      client.destroy();
      return answer;
    };
    await untilEqual('127.0.0.3', askAnew, 'the new address');
    assert.equal(await ask(old), '127.0.0.2');
    assert.match(
      await weir.admin('/clusters'),
      new RegExp(`^web::127\\.0\\.0\\.3:${port}::hostname::web\\.test\\.$`, 'm'),
    );
    assert.equal(await weir.stat('cluster.web.membership_total'), 1);
    assert.equal(await weir.stat('cluster.web.membership_change'), 1);
    assert.equal(
      await weir.stat('cluster.web.upstream_cx_destroy'),
      (await weir.stat('cluster.web.upstream_cx_total'))! - 1,
    );
    assert.ok(dns.queries.every((query) => query === 'web.test A TCP'));
    // What is known stays while the server fails, and while it says nothing.
    dns.fail('SERVFAIL');
    const failures = async (): Promise<boolean> => ((await weir.stat('cluster.web.update_failure')) ?? 0) > 1;
    await untilEqual(true, failures, 'a second failure');
    dns.fail(undefined);
    dns.set('web.test', []);
    const known = (await weir.stat('cluster.web.update_failure'))!;
    await untilEqual(
      true,
      async () => ((await weir.stat('cluster.web.update_failure')) ?? 0) > known + 1,
      'empty answers',
    );
    assert.equal(await askAnew(), '127.0.0.3');
    old.destroy();
    for (const server of servers) server.close();
  });
});
