// A real cluster of Redis servers behind the program: keys go where their slots are, from the first command on, and follow when
// servers change their parts.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { clusterNamed, faultTexts, type JsonObject, load, withClusters } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { untilEqual } from '../support/eventually.ts';
import {
  type RedisServer,
  redisCli,
  redisFilter,
  startRedis,
  startRedisCluster,
  startRedisProxy,
} from '../support/redis-servers.ts';
import { tlsMessage } from '../support/tls-config.ts';
import { unusedPort } from '../support/wire.ts';

const TYPE = 'type.googleapis.com/envoy.extensions.clusters.redis.v3.RedisClusterConfig';
const KEYS = Array.from({ length: 40 }, (_entry, index) => `key:${index}`);

function ofRedis(fields: JsonObject = {}): JsonObject {
  const cluster_type = { name: 'envoy.clusters.redis', typed_config: { '@type': TYPE, ...fields } };
  return { lb_policy: 'CLUSTER_PROVIDED', cluster_type };
}

describe('a cluster of Redis servers', () => {
  let servers: RedisServer[] = [];

  before(async () => {
    servers = await startRedisCluster();
  });

  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });

  it('is found by one of them, and each key by its slot', async () => {
    const { weir, port } = await startRedisProxy({ ring: [servers[1]!.port] }, redisFilter(), ofRedis());
    await using _ = weir;
    assert.equal(await redisCli(port, 'mset', ...KEYS.flatMap((key) => [key, key])), 'OK');
    assert.equal(await redisCli(port, 'mget', ...KEYS), KEYS.join('\n'));
    assert.equal(await redisCli(port, 'set', '{a}:1', 'x'), 'OK');
    assert.equal(await weir.stat('cluster.ring.membership_total'), 3);
    assert.equal((await weir.stat('cluster.ring.upstream_internal_redirect_succeeded_total')) ?? 0, 0);
    const hosts = await weir.admin('/clusters');
    const requests = (server: RedisServer): number =>
      Number(new RegExp(`127.0.0.1:${server.port}::rq_total::(\\d+)`).exec(hosts)![1]);
    assert.ok(requests(servers[0]!) > 0 && requests(servers[1]!) > 0);
    assert.equal(requests(servers[2]!), 0, 'copies are for those who ask for them');
  });

  it('has its copies asked by commands that read, where that is wanted', async () => {
    const policy = redisFilter({}, { read_policy: 'REPLICA' });
    const { weir, port } = await startRedisProxy({ ring: [servers[0]!.port] }, policy, ofRedis());
    await using _ = weir;
    // Of the first server, which alone has a copy.
    const key = 'bar';
    assert.equal(await redisCli(port, 'set', key, 'here'), 'OK');
    await untilEqual('here', () => redisCli(port, 'get', key), 'what the copy says');
    const hosts = await weir.admin('/clusters');
    assert.match(hosts, new RegExp(`127.0.0.1:${servers[2]!.port}::rq_total::[1-9]`));
    assert.match(await redisCli(port, 'get', 'foo'), /no upstream host/, 'the second server has no copy');
  });

  it('is asked again and again, so that keys follow when servers change their parts', async () => {
    const often = ofRedis({ cluster_refresh_rate: '0.05s' });
    const { weir, port } = await startRedisProxy({ ring: [servers[0]!.port] }, redisFilter(), often);
    await using _ = weir;
    assert.equal(await redisCli(port, 'set', 'bar', 'before'), 'OK');
    assert.equal(await servers[2]!.cli('cluster', 'failover'), 'OK');
    await untilEqual('OK', () => redisCli(port, 'set', 'bar', 'after'), 'the new primary of the key');
    assert.equal(await servers[2]!.cli('get', 'bar'), 'after');
    const updates = (await weir.stat('cluster.ring.update_success')) ?? 0;
    assert.ok(updates > ((await weir.stat('cluster.ring.update_no_rebuild')) ?? 0));
  });

  it('is found where servers call each other by names', async () => {
    const isNamed = async (): Promise<boolean> => {
      const slots = await Promise.all(servers.map(({ cli }) => cli('cluster', 'slots')));
      return slots.every((text) => servers.every(({ port }) => text.includes(`localhost\n${port}`)));
    };
    for (const { cli } of servers) {
      await cli('config', 'set', 'cluster-announce-hostname', 'localhost');
      await cli('config', 'set', 'cluster-preferred-endpoint-type', 'hostname');
    }
    await untilEqual(true, isNamed, 'all know the names of all');
    const { weir, port } = await startRedisProxy({ ring: [servers[0]!.port] }, redisFilter(), ofRedis());
    await using _ = weir;
    assert.equal(await redisCli(port, 'mset', ...KEYS.flatMap((key) => [key, key])), 'OK');
    assert.equal(await redisCli(port, 'mget', ...KEYS), KEYS.join('\n'));
    assert.equal(await weir.stat('cluster.ring.membership_total'), 3);
    assert.match(await weir.admin('/clusters'), /127\.0\.0\.1:\d+::hostname::localhost/);
  });
});

it('servers that say nothing of a cluster leave none behind, and are asked again', async () => {
  const plain = await startRedis();
  try {
    const { weir, port } = await startRedisProxy(
      { ring: [plain.port] },
      redisFilter(),
      ofRedis({ cluster_refresh_rate: '0.05s', cluster_refresh_timeout: '60s' }),
    );
    await using _ = weir;
    assert.match(await redisCli(port, 'get', 'a'), /no upstream host/);
    const isAskedAgain = async (): Promise<boolean> => ((await weir.stat('cluster.ring.update_failure')) ?? 0) > 1;
    await untilEqual(true, isAskedAgain, 'asked again');
    assert.match(weir.output.stderr, /does not say who has which keys: answered .*cluster support disabled/);
  } finally {
    await plain.stop();
  }
});

it('servers that speak TLS are asked so, and have to be who they are', async () => {
  using folder = new CertificateFolder();
  const certificate = await folder.make('redis', { altNames: 'DNS:redis.test' });
  const tlsPort = await unusedPort();
  const server = await startRedis(
    ...['--cluster-enabled', 'yes', '--cluster-port', String(await unusedPort())],
    ...[
      '--tls-port',
      String(tlsPort),
      '--tls-cluster',
      'yes',
      '--tls-auth-clients',
      'no',
      '--tls-cert-file',
      certificate.certificatePath,
    ],
    ...['--tls-key-file', certificate.keyPath, '--tls-ca-cert-file', certificate.certificatePath],
  );
  try {
    await server.cli('cluster', 'addslotsrange', '0', '16383');
    const secured = (name: string): JsonObject => ({
      ...ofRedis({ cluster_refresh_rate: '0.05s' }),
      transport_socket: {
        name: 'tls',
        typed_config: tlsMessage('UpstreamTlsContext', {
          sni: 'redis.test',
          common_tls_context: {
            validation_context: {
              trusted_ca: { filename: certificate.certificatePath },
              match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: name } }],
            },
          },
        }) as JsonObject,
      },
    });
    {
      const { weir, port } = await startRedisProxy({ ring: [tlsPort] }, redisFilter(), secured('redis.test'));
      await using _ = weir;
      await untilEqual('OK', () => redisCli(port, 'set', 'a', 'b'), 'a command by TLS');
      assert.equal(await redisCli(port, 'get', 'a'), 'b');
      assert.match(await weir.admin('/clusters'), new RegExp(`127\\.0\\.0\\.1:${tlsPort}::rq_total::[1-9]`));
    }
    const { weir, port } = await startRedisProxy({ ring: [tlsPort] }, redisFilter(), secured('other.test'));
    await using _ = weir;
    const isRefused = async (): Promise<boolean> => ((await weir.stat('cluster.ring.update_failure')) ?? 0) > 0;
    await untilEqual(true, isRefused, 'a server that is another');
    assert.match(await redisCli(port, 'get', 'a'), /no upstream host/);
    assert.match(
      weir.output.stderr,
      /does not say who has which keys: certificate verify failed: no subject alternative name fits/,
    );
  } finally {
    await server.stop();
  }
});

describe('the type of Redis clusters', () => {
  const faults = (fields: JsonObject): string =>
    faultTexts(load(withClusters(clusterNamed('web', { ...ofRedis(), ...fields })))).join('\n');

  it('needs endpoints, and a balancer of its own', () => {
    assert.equal(faults({}), '');
    assert.match(faults({ lb_policy: 'ROUND_ROBIN' }), /type REDIS needs CLUSTER_PROVIDED/);
    assert.match(faults({ load_assignment: { cluster_name: 'web' } }), /load_assignment: type REDIS needs endpoints/);
  });

  it('refuses times that are none', () => {
    assert.match(faults(ofRedis({ cluster_refresh_rate: '0s' })), /cluster_refresh_rate: /);
    assert.match(faults(ofRedis({ cluster_refresh_timeout: '-1s' })), /cluster_refresh_timeout: /);
  });
});
