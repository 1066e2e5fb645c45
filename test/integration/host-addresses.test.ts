// Hosts with several addresses in the real program: the next is tried when one refuses or says nothing, over HTTP and TCP,
// with addresses of the configuration and of DNS.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  httpFilter,
  type Json,
  type JsonObject,
  listenerWith,
  socketAddress,
  tcpFilter,
} from '../support/bootstrap.ts';
import { startDeafServer } from '../support/deaf-server.ts';
import { DnsServer } from '../support/dns-server.ts';
import { ReservedPort } from '../support/reserved-port.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
/** As many milliseconds as the next attempt waits for the one before. */
const DELAY_MS = 300;
/** Nobody is there. */
const REFUSING = '127.0.0.2';
/** Somebody is there, and says nothing. */
const DEAF = '127.0.0.3';

const ROUTES: JsonObject = {
  virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'web' } }] }],
};
const ACCESS_LOG: Json = [
  {
    name: 'envoy.access_loggers.stdout',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
      log_format: { text_format_source: { inline_string: 'to=%UPSTREAM_REMOTE_ADDRESS%\n' } },
    },
  },
];

async function start(cluster: JsonObject, dns?: DnsServer): Promise<WeirProcess> {
  const http = httpFilter({ route_config: ROUTES, access_log: ACCESS_LOG });
  const tcp = tcpFilter({ cluster: 'web', access_log: ACCESS_LOG });
  const configYaml = JSON.stringify({
    admin: { address: socketAddress('127.0.0.1', 0) },
    ...(dns && { dns_resolution_config: { resolvers: [socketAddress('127.0.0.1', dns.port)] } }),
    static_resources: {
      listeners: [
        listenerWith([http], { name: 'http', address: socketAddress('127.0.0.1', 0) }),
        listenerWith([tcp], { name: 'tcp', address: socketAddress('127.0.0.1', 0) }),
      ],
      clusters: [{ name: 'web', ...cluster }],
    },
  });
  return await startWeir({ configYaml });
}

function endpointAt(port: number, [first, ...others]: readonly string[], fields: JsonObject = {}): JsonObject {
  const additional_addresses = others.map((ip) => ({ address: socketAddress(ip, port) }));
  const endpoint = { address: socketAddress(first!, port), additional_addresses, ...fields };
  return { load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [{ endpoint }] }] } };
}

/** One request over HTTP or TCP, on a connection of its own. */
async function ask(weir: WeirProcess, listener: string): Promise<number> {
  const client = new WireClient((await weir.listeners()).get(listener)!.port).write(REQUEST);
  const { status } = await client.response();
  client.close();
  return status;
}

describe('a host with several addresses', () => {
  for (const listener of ['http', 'tcp']) {
    it(`is reached by ${listener} at the one that answers, past one that refuses and one that does not`, async () => {
      const upstream = await WireUpstream.answering(ANSWER);
      const { port } = upstream;
      const deaf = await startDeafServer(DEAF, port);
      await using weir = await start(endpointAt(port, [REFUSING, DEAF, '127.0.0.1']));
      const beganMs = performance.now();
      assert.equal(await ask(weir, listener), 200);
      assert.ok(performance.now() - beganMs >= DELAY_MS);
      await weir.untilStat('cluster.web.upstream_cx_total', 3);
      await weir.untilStat('cluster.web.upstream_cx_connect_fail', 0);
      await weir.untilStat('cluster.web.upstream_cx_active', listener === 'http' ? 1 : 0);
      if (listener === 'http') assert.equal(await ask(weir, listener), 200);
      await weir.stop();
      assert.match(weir.output.stdout, new RegExp(`^to=127\\.0\\.0\\.1:${port}$`, 'm'));
      assert.equal(upstream.sockets.length, 1);
      deaf.close();
      await upstream.close();
    });
  }

  it('has failed when all of its addresses have', async () => {
    // One that was free a moment ago would be given to another test.
    await using nobody = await ReservedPort.take();
    await using weir = await start(endpointAt(nobody.port, [REFUSING, '127.0.0.1']));
    assert.equal(await ask(weir, 'http'), 503);
    await weir.untilStat('cluster.web.upstream_cx_connect_fail', 1);
    await weir.untilStat('cluster.web.upstream_cx_total', 2);
    await weir.untilStat('cluster.web.upstream_cx_active', 0);
  });

  it('is checked at its own address alone', async () => {
    const upstream = await WireUpstream.answering(ANSWER);
    const check = {
      timeout: '1s',
      interval: '0.1s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      tcp_health_check: {},
    };
    await using weir = await start({
      ...endpointAt(upstream.port, [REFUSING, '127.0.0.1']),
      health_checks: [check],
    });
    await weir.untilStat('cluster.web.health_check.failure', 1);
    await weir.untilStat('cluster.web.membership_healthy', 0);
    await upstream.close();
  });

  it('has those that DNS has found, in a LOGICAL_DNS cluster', async () => {
    await using dns = await DnsServer.start();
    dns.set('web.test', [REFUSING, '127.0.0.1']);
    const upstream = await WireUpstream.answering(ANSWER);
    const cluster = {
      type: 'LOGICAL_DNS',
      dns_lookup_family: 'V4_ONLY',
      hosts: [socketAddress('web.test.', upstream.port)],
    };
    await using weir = await start(cluster, dns);
    assert.equal(await ask(weir, 'http'), 200);
    assert.match(await weir.admin('/clusters'), new RegExp(`^web::127\\.0\\.0\\.2:${upstream.port}::hostname`, 'm'));
    await weir.untilStat('cluster.web.upstream_cx_total', 2);
    await upstream.close();
  });
});
