// redis_proxy and the servers behind it: those that ask who comes, those that send a client elsewhere, those that are ill; and answers
// that are late or wrong on purpose.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clusterNamed, faultTexts, type JsonObject, listenerWith, load } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { redisCli, redisFilter, startRedis, startRedisProxy } from '../support/redis-servers.ts';
import { unusedPort } from '../support/wire.ts';

const OPTIONS = 'type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions';
const CHECKER = 'type.googleapis.com/envoy.extensions.health_checkers.redis.v3.Redis';

function withOptions(fields: JsonObject): JsonObject {
  return { typed_extension_protocol_options: { 'envoy.filters.network.redis_proxy': { '@type': OPTIONS, ...fields } } };
}

function checked(fields: JsonObject = {}): JsonObject {
  const custom_health_check = { name: 'envoy.health_checkers.redis', typed_config: { '@type': CHECKER, ...fields } };
  const thresholds = { unhealthy_threshold: 1, healthy_threshold: 1 };
  return {
    health_checks: [
      { timeout: '5s', interval: '0.05s', no_traffic_interval: '0.05s', ...thresholds, custom_health_check },
    ],
  };
}

describe('servers that ask who comes', () => {
  it('are told the password and the name', async () => {
    const server = await startRedis('--user default off', '--user app on >secret ~* +@all');
    const names = { auth_username: { inline_string: 'app' }, auth_password: { inline_string: 'secret' } };
    const { weir, port } = await startRedisProxy({ ring: [server.port] }, redisFilter(), withOptions(names));
    try {
      assert.equal(await redisCli(port, 'set', 'a', '1'), 'OK');
      assert.equal(await redisCli(port, 'get', 'a'), '1');
      assert.equal(await weir.stat('cluster.ring.upstream_rq_total'), 2);
      assert.doesNotMatch(await weir.admin('/config_dump'), /secret/);
    } finally {
      await weir[Symbol.asyncDispose]();
      await server.stop();
    }
  });

  it('leave clients an error that says so when they are told another', async () => {
    const server = await startRedis('--requirepass', 'secret');
    const wrong = withOptions({ auth_password: { inline_string: 'guess' } });
    const { weir, port } = await startRedisProxy({ ring: [server.port] }, redisFilter(), wrong);
    try {
      assert.match(await redisCli(port, 'get', 'a'), /upstream authentication failed/);
      assert.equal(await weir.stat('cluster.ring.upstream_rq_active'), 0);
    } finally {
      await weir[Symbol.asyncDispose]();
      await server.stop();
    }
  });
});

it('members of a real cluster have their keys found, whichever of them is asked first', async () => {
  const servers = await Promise.all(
    [1, 2].map(async () =>
      startRedis(
        '--cluster-enabled',
        'yes',
        '--cluster-port',
        String(await unusedPort()),
        '--cluster-node-timeout',
        '5000',
      ),
    ),
  );
  const [first, second] = servers as [(typeof servers)[0], (typeof servers)[0]];
  try {
    await first.cli('cluster', 'addslotsrange', '0', '8191');
    await second.cli('cluster', 'addslotsrange', '8192', '16383');
    const bus = (await second.cli('config', 'get', 'cluster-port')).split('\n').at(-1)!;
    await first.cli('cluster', 'meet', '127.0.0.1', String(second.port), bus);
    const state = async (): Promise<string> =>
      (
        await Promise.all(servers.map(async ({ cli }) => /cluster_state:(\w+)/.exec(await cli('cluster', 'info'))![1]))
      ).join();
    await untilEqual('ok,ok', state, 'the state of both');
    const ports = servers.map(({ port }) => port);
    const { weir, port } = await startRedisProxy({ ring: ports }, redisFilter({}, { enable_redirection: true }));
    await using _ = weir;
    const keys = Array.from({ length: 40 }, (_entry, index) => `moved:${index}`);
    assert.equal(await redisCli(port, 'mset', ...keys.flatMap((key) => [key, key])), 'OK');
    assert.equal(await redisCli(port, 'mget', ...keys), keys.join('\n'));
    const moved = (await weir.stat('cluster.ring.upstream_internal_redirect_succeeded_total')) ?? 0;
    assert.ok(moved > 0 && moved < 2 * keys.length, `${moved} were sent on`);
    assert.equal(await weir.stat('cluster.ring.upstream_internal_redirect_failed_total'), 0);
    assert.equal(await weir.stat('cluster.ring.upstream_rq_active'), 0);

    const { weir: plain, port: plainPort } = await startRedisProxy({ ring: [first.port] }, redisFilter());
    await using _plain = plain;
    const answers = await Promise.all(keys.slice(0, 10).map((key) => redisCli(plainPort, 'get', key)));
    assert.ok(
      answers.some((answer) => answer.startsWith('MOVED')),
      'who does not follow hears of it',
    );
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});

describe('checks by Redis', () => {
  it('ask for a PING with the password of the cluster, and notice a server that goes and one that comes back', async () => {
    const secret = ['--requirepass', 'secret'];
    const [first, second] = await Promise.all([startRedis(...secret), startRedis(...secret)]);
    const fields = { ...checked(), ...withOptions({ auth_password: { inline_string: 'secret' } }) };
    const { weir, port } = await startRedisProxy({ ring: [first.port, second.port] }, redisFilter(), fields);
    try {
      await weir.untilStat('cluster.ring.membership_healthy', 2);
      await second.stop();
      await weir.untilStat('cluster.ring.membership_healthy', 1);
      for (const key of ['a', 'b', 'c', 'd', 'e']) assert.equal(await redisCli(port, 'set', key, '1'), 'OK');
      assert.ok(((await weir.stat('cluster.ring.health_check.success')) ?? 0) > 1);
    } finally {
      await weir[Symbol.asyncDispose]();
      await first.stop();
    }
  });

  it('take a server out of service while it has the key of maintenance', async () => {
    const [first, second] = await Promise.all([startRedis(), startRedis()]);
    const { weir } = await startRedisProxy(
      { ring: [first.port, second.port] },
      redisFilter(),
      checked({ key: 'upkeep' }),
    );
    try {
      await weir.untilStat('cluster.ring.membership_healthy', 2);
      await second.cli('set', 'upkeep', '1');
      await weir.untilStat('cluster.ring.membership_healthy', 1);
      assert.match(
        await weir.admin('/clusters'),
        new RegExp(`127.0.0.1:${second.port}::health_flags::/failed_active_hc`),
      );
      await second.cli('del', 'upkeep');
      await weir.untilStat('cluster.ring.membership_healthy', 2);
    } finally {
      await weir[Symbol.asyncDispose]();
      await Promise.all([first.stop(), second.stop()]);
    }
  });

  it('fail where a password is missing', async () => {
    const server = await startRedis('--requirepass', 'secret');
    const { weir } = await startRedisProxy({ ring: [server.port] }, redisFilter(), checked());
    try {
      await weir.untilStat('cluster.ring.membership_healthy', 0);
      assert.ok(((await weir.stat('cluster.ring.health_check.failure')) ?? 0) > 0);
      assert.equal(await weir.stat('cluster.ring.health_check.network_failure'), 0);
    } finally {
      await weir[Symbol.asyncDispose]();
      await server.stop();
    }
  });
});

it('commands are answered with an error, or late, where the configuration says so', async () => {
  const server = await startRedis();
  const always = { default_value: { numerator: 100, denominator: 'HUNDRED' } };
  const faults = [
    { fault_type: 'ERROR', fault_enabled: always, commands: ['SET'] },
    { fault_type: 'DELAY', fault_enabled: always, delay: '0.3s', commands: ['get'] },
    { fault_type: 'ERROR', fault_enabled: { ...always, runtime_key: 'redis.drill' }, commands: ['incr'] },
  ];
  const filter = redisFilter({ faults }, { enable_command_stats: true });
  const { weir, port } = await startRedisProxy({ ring: [server.port] }, filter);
  try {
    assert.match(await redisCli(port, 'set', 'a', '1'), /Fault Injected: Error/);
    assert.equal(await server.cli('exists', 'a'), '0');
    await server.cli('set', 'a', '2');
    const begunMs = performance.now();
    assert.equal(await redisCli(port, 'get', 'a'), '2');
    assert.ok(performance.now() - begunMs >= 299, 'it was late');
    assert.match(await redisCli(port, 'incr', 'a'), /Fault Injected/);
    assert.equal(await redisCli(port, 'append', 'a', '3'), '2');
    assert.equal(await weir.stat('redis.cache.command.set.error_fault'), 1);
    assert.equal(await weir.stat('redis.cache.command.set.error'), 1);
    assert.equal(await weir.stat('redis.cache.command.get.delay_fault'), 1);
    assert.equal(await weir.stat('redis.cache.command.append.error_fault'), 0);
  } finally {
    await weir[Symbol.asyncDispose]();
    await server.stop();
  }
});

it('commands that read go to a cluster of their own where there is one', async () => {
  const [writes, reads] = await Promise.all([startRedis(), startRedis()]);
  const route = { cluster: 'ring', read_command_policy: { cluster: 'reads' } };
  const filter = redisFilter({ prefix_routes: { catch_all_route: route } });
  const { weir, port } = await startRedisProxy({ ring: [writes.port], reads: [reads.port] }, filter);
  try {
    await reads.cli('set', 'a', 'from the copy');
    assert.equal(await redisCli(port, 'set', 'a', 'written'), 'OK');
    assert.equal(await redisCli(port, 'get', 'a'), 'from the copy');
    assert.equal(await redisCli(port, 'mget', 'a'), 'from the copy');
    assert.equal(await writes.cli('get', 'a'), 'written');
  } finally {
    await weir[Symbol.asyncDispose]();
    await Promise.all([writes.stop(), reads.stop()]);
  }
});

describe('the configuration of Redis servers', () => {
  const faultsOf = (fields: JsonObject): string =>
    faultTexts(
      load({
        static_resources: {
          clusters: [{ ...clusterNamed('ring'), ...fields }],
          listeners: [listenerWith([redisFilter()])],
        },
      }),
    ).join('\n');

  for (const [what, fields, fault] of [
    ['an empty password', withOptions({ auth_password: { inline_string: '' } }), /auth_password/],
    [
      'a name without a password',
      withOptions({ auth_username: { inline_string: 'a' } }),
      /auth_username: needs auth_password/,
    ],
    [
      'AWS',
      withOptions({ auth_password: { inline_string: 'a' }, aws_iam: { region: 'x' } }),
      /aws_iam is not supported/,
    ],
    ['AWS in a check', checked({ aws_iam: { region: 'x' } }), /aws_iam/],
    [
      'another checker',
      {
        health_checks: [
          {
            ...(checked().health_checks as JsonObject[])[0],
            custom_health_check: { name: 'envoy.health_checkers.thrift' },
          },
        ],
      },
      /health_checkers\.thrift/,
    ],
  ] as const) {
    it(`is refused with ${what}`, () => assert.match(faultsOf(fields as unknown as JsonObject), fault));
  }

  it('is taken in the form of v2', () => {
    const custom_health_check = { name: 'envoy.health_checkers.redis', config: { key: 'upkeep' } };
    const check = { ...(checked().health_checks as JsonObject[])[0], custom_health_check };
    assert.equal(faultsOf({ health_checks: [check] }), '');
  });
});
