// redis_proxy in the real program: real servers of Redis behind it, redis-cli and redis-benchmark before it, and raw clients.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { clusterNamed, faultTexts, type JsonObject, listenerWith, load } from '../support/bootstrap.ts';
import { runProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';
import {
  redisCli as cli,
  type RedisServer,
  redisFilter,
  startRedisProxy as start,
  startRedis,
} from '../support/redis-servers.ts';
import { unusedPort } from '../support/wire.ts';

/** One raw conversation. @returns all that has come when so much has. */
async function talk(port: number, text: string, until: RegExp): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('latin1').write(text);
  let heard = '';
  for await (const chunk of socket) {
    heard += chunk;
    if (until.test(heard.slice(-100))) break;
  }
  assert.match(heard.slice(-100), until);
  return heard;
}

describe('redis_proxy', () => {
  let servers: readonly RedisServer[] = [];
  before(async () => {
    servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  });
  after(() => Promise.all(servers.map((server) => server.stop())));
  const ports = (): number[] => servers.map(({ port }) => port);

  it('spreads keys over servers, each always to the same one, and counts', async () => {
    const { weir, port } = await start({ ring: ports() }, redisFilter({}, { enable_command_stats: true }));
    await using _ = weir;
    const keys = Array.from({ length: 60 }, (_entry, index) => `spread:${index}`);
    for (const key of keys) assert.equal(await cli(port, 'set', key, key.toUpperCase()), 'OK');
    for (const key of keys) assert.equal(await cli(port, 'get', key), key.toUpperCase());
    const counts = await Promise.all(servers.map((server) => server.cli('keys', 'spread:*')));
    const found = counts.map((text) => text.split('\n').filter((line) => line !== ''));
    assert.equal(found.flat().length, keys.length);
    assert.ok(
      found.every((part) => part.length > 0),
      'each server has some',
    );
    assert.equal(await weir.stat('redis.cache.command.set.total'), keys.length);
    assert.equal(await weir.stat('redis.cache.command.get.success'), keys.length);
    assert.equal(await weir.stat('cluster.ring.upstream_rq_total'), 2 * keys.length);
    await untilEqual(0, () => weir.stat('redis.cache.downstream_cx_active'), 'open connections');
    assert.equal(await weir.stat('redis.cache.downstream_rq_active'), 0);
    assert.equal(await weir.stat('cluster.ring.upstream_rq_active'), 0);
  });

  it('splits commands of several keys, and joins their answers in order', async () => {
    const { weir, port } = await start({ ring: ports() }, redisFilter());
    await using _ = weir;
    const names = Array.from({ length: 20 }, (_entry, index) => `many:${index}`);
    assert.equal(await cli(port, 'mset', ...names.flatMap((name) => [name, `v-${name}`])), 'OK');
    assert.equal(
      await cli(port, 'mget', ...names, 'many:none'),
      [...names.map((name) => `v-${name}`), ''].join('\n').trimEnd(),
    );
    assert.equal(await cli(port, 'exists', ...names, 'many:none'), '20');
    assert.equal(await cli(port, 'touch', ...names), '20');
    assert.equal(await cli(port, 'del', ...names.slice(0, 5)), '5');
    assert.equal(await cli(port, 'unlink', ...names), '15');
    assert.match(await cli(port, 'mset', 'odd'), /invalid request/);
    await servers[0]!.cli('flushall');
    const wrong = names.map((name) => cli(port, 'lpush', name, 'x'));
    await Promise.all(wrong);
    assert.match(await cli(port, 'mget', ...names), /WRONGTYPE/);
    assert.match(await cli(port, 'append', 'only'), /ERR wrong number of arguments/);
  });

  it('keeps keys with one tag together, and runs scripts where their key is', async () => {
    const { weir, port } = await start({ ring: ports() }, redisFilter({}, { enable_hashtagging: true }));
    await using _ = weir;
    const names = Array.from({ length: 12 }, (_entry, index) => `{tag}:${index}`);
    for (const name of names) await cli(port, 'set', name, '1');
    const counts = await Promise.all(servers.map((server) => server.cli('keys', '{tag}:*')));
    assert.deepEqual(
      counts.map((text) => text.split('\n').filter(Boolean).length).toSorted((a, b) => a - b),
      [0, 0, 12],
    );
    const script = "return redis.call('get', KEYS[1]) .. ARGV[1]";
    assert.equal(await cli(port, 'eval', script, '1', '{tag}:3', '!'), '1!');
  });

  it('answers pipelined commands in their order, whoever is asked', async () => {
    const { weir, port } = await start({ ring: ports() }, redisFilter());
    await using _ = weir;
    const lines = Array.from({ length: 3000 }, (_entry, index) => {
      const key = `pipe:${index}`;
      return `*3\r\n$3\r\nSET\r\n$${key.length}\r\n${key}\r\n$${key.length}\r\n${key}\r\n*2\r\n$3\r\nGET\r\n$${key.length}\r\n${key}\r\n*1\r\n$4\r\nPING\r\n`;
    });
    const heard = await talk(port, lines.join(''), /pipe:2999\r\n\+PONG\r\n$/);
    const expected = lines
      .map((_line, index) => `+OK\r\n$${`pipe:${index}`.length}\r\npipe:${index}\r\n+PONG\r\n`)
      .join('');
    assert.equal(heard, expected);
  });

  it('answers itself what needs no server, and refuses what it cannot send anywhere', async () => {
    const { weir, port } = await start({ ring: ports() }, redisFilter());
    await using _ = weir;
    assert.equal(await cli(port, 'ping'), 'PONG');
    assert.equal(await cli(port, 'ping', 'hello'), 'hello');
    assert.equal(await cli(port, 'echo', 'hello'), 'hello');
    assert.match(await cli(port, 'time'), /^\d+\n\d+$/);
    assert.match(await cli(port, 'auth', 'x'), /no password is set/);
    assert.match(await cli(port, 'keys', '*'), /unknown command 'keys'/);
    assert.match(await cli(port, 'multi'), /unknown command/);
    assert.match(await cli(port, 'get'), /invalid request/);
    assert.equal(await weir.stat('redis.cache.splitter.unsupported_command'), 2);
    assert.equal(await weir.stat('redis.cache.splitter.invalid_request'), 1);
    assert.equal(await talk(port, '*1\r\n$4\r\nQUIT\r\n', /\r\n$/), '+OK\r\n');
    assert.equal(await talk(port, 'PING\r\n', /\r\n$/), '-downstream protocol error\r\n');
    assert.equal(await weir.stat('redis.cache.downstream_cx_protocol_error'), 1);
  });

  it('has clients say who they are', async () => {
    const auth = { downstream_auth_passwords: [{ inline_string: 'old' }, { inline_string: 'new' }] };
    const { weir, port } = await start({ ring: ports() }, redisFilter(auth));
    await using _ = weir;
    assert.match(await cli(port, 'get', 'a'), /NOAUTH/);
    assert.match(await cli(port, 'ping'), /NOAUTH/);
    for (const password of ['old', 'new']) {
      assert.equal(await cli(port, '--no-auth-warning', '-a', password, 'set', 'authed', '1'), 'OK');
    }
    assert.match(await cli(port, '--no-auth-warning', '-a', 'wrong', 'get', 'authed'), /NOAUTH/);
    // A stranger may not have much kept for it.
    assert.match(await talk(port, '*2\r\n$4\r\nAUTH\r\n$20000\r\n', /\r\n$/), /downstream protocol error/);
    const dump = await weir.admin('/config_dump');
    assert.doesNotMatch(dump, /"old"|"new"/);
    assert.match(dump, /redacted/);
  });

  it('sends keys by their beginning, without it where told, and copies to mirrors', async () => {
    const [first, second, third] = ports();
    const prefix_routes = {
      case_insensitive: true,
      routes: [
        { prefix: 'ab', cluster: 'first' },
        { prefix: 'ABC:', cluster: 'second', remove_prefix: true },
      ],
      catch_all_route: { cluster: 'third', request_mirror_policy: [{ cluster: 'first', exclude_read_commands: true }] },
    };
    const clusters = { first: [first!], second: [second!], third: [third!] };
    const { weir, port } = await start(clusters, redisFilter({ prefix_routes }));
    await using _ = weir;
    await cli(port, 'set', 'Ab1', 'a');
    await cli(port, 'set', 'abc:2', 'b');
    await cli(port, 'set', 'x3', 'c');
    assert.equal(await servers[0]!.cli('get', 'Ab1'), 'a');
    assert.equal(await servers[1]!.cli('get', '2'), 'b');
    assert.equal(await servers[2]!.cli('get', 'x3'), 'c');
    await untilEqual('c', () => servers[0]!.cli('get', 'x3'), 'the copy');
    const before = await weir.stat('cluster.first.upstream_rq_total');
    assert.equal(await cli(port, 'get', 'x3'), 'c');
    assert.equal(await weir.stat('cluster.first.upstream_rq_total'), before);
  });

  it('gives up a server that does not answer in time, or not at all, or nonsense', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    const liar = createServer((socket) => socket.on('data', () => socket.write('hello\r\n'))).listen(0, '127.0.0.1');
    await Promise.all([once(silent, 'listening'), once(liar, 'listening')]);
    const at = (server: typeof silent): number => (server.address() as AddressInfo).port;
    const clusters = { ring: [at(silent)], liar: [at(liar)], none: [await unusedPort()] };
    const prefix_routes = {
      routes: [
        { prefix: 'l', cluster: 'liar' },
        { prefix: 'n', cluster: 'none' },
      ],
      catch_all_route: { cluster: 'ring' },
    };
    const { weir, port } = await start(clusters, redisFilter({ prefix_routes }, { op_timeout: '0.2s' }));
    try {
      assert.match(await cli(port, 'get', 'a'), /upstream failure/);
      assert.equal(await weir.stat('cluster.ring.upstream_rq_timeout'), 1);
      assert.match(await cli(port, 'get', 'l'), /upstream failure/);
      assert.match(await cli(port, 'get', 'n'), /upstream failure/);
      assert.equal(await weir.stat('cluster.none.upstream_cx_connect_fail'), 1);
      await untilEqual(0, () => weir.stat('cluster.ring.upstream_cx_active'), 'connections to the silent server');
      assert.equal(await weir.stat('cluster.ring.upstream_rq_active'), 0);
    } finally {
      await weir[Symbol.asyncDispose]();
      silent.close();
      liar.close();
    }
  });

  it('collects requests for a while where it is told to', async () => {
    const settings = { max_buffer_size_before_flush: 1024, buffer_flush_timeout: '0.001s' };
    const { weir, port } = await start({ ring: ports() }, redisFilter({}, settings));
    await using _ = weir;
    assert.equal(await cli(port, 'set', 'flushed', 'x'.repeat(5000)), 'OK');
    assert.equal((await cli(port, 'get', 'flushed')).length, 5000);
  });

  it('stands redis-benchmark', async () => {
    const { weir, port } = await start({ ring: ports() }, redisFilter());
    await using _ = weir;
    const args = ['-h', '127.0.0.1', '-p', String(port), '-n', '20000', '-c', '20', '-P', '16', '-r', '1000', '-q'];
    const { stdout } = await runProgram('redis-benchmark', [...args, '-t', 'set,get,incr,lpush,mset']);
    for (const name of ['SET', 'GET', 'INCR', 'LPUSH', 'MSET']) {
      assert.match(stdout, new RegExp(`${name}[^\\n]*requests per second`));
    }
    await untilEqual(0, () => weir.stat('cluster.ring.upstream_rq_active'), 'requests under way');
  });
});

describe('the configuration of redis_proxy', () => {
  const errors = (fields: JsonObject, settings: JsonObject = {}): string =>
    faultTexts(
      load({
        static_resources: {
          clusters: [clusterNamed('ring')],
          listeners: [listenerWith([redisFilter(fields, settings)])],
        },
      }),
    ).join('\n');

  it('is taken in the form of v2', () => {
    const filter = {
      name: 'envoy.redis_proxy',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.config.filter.network.redis_proxy.v2.RedisProxy',
        stat_prefix: 'cache',
        cluster: 'ring',
        settings: { op_timeout: '1s' },
      },
    };
    const bootstrap = { static_resources: { clusters: [clusterNamed('ring')], listeners: [listenerWith([filter])] } };
    assert.deepEqual(faultTexts(load(bootstrap)), []);
  });

  for (const [what, fields, settings, fault] of [
    ['no route', { prefix_routes: {} }, {}, /prefix_routes: needs routes or catch_all_route/],
    ['an unknown cluster', { prefix_routes: { catch_all_route: { cluster: 'rign' } } }, {}, /did you mean "ring"/],
    ['a fault without a share', { faults: [{ fault_type: 'ERROR' }] }, {}, /faults\[0\]\.fault_enabled/],
    [
      'reads that go to an unknown cluster',
      { prefix_routes: { catch_all_route: { cluster: 'ring', read_command_policy: { cluster: 'rign' } } } },
      {},
      /read_command_policy\.cluster: cluster "rign" does not exist/,
    ],
    [
      'an empty password',
      { downstream_auth_password: { inline_string: '' } },
      {},
      /downstream_auth_password: is empty|downstream_auth_password/,
    ],
    [
      'a user without password',
      { downstream_auth_username: { inline_string: 'a' } },
      {},
      /needs downstream_auth_passwords/,
    ],
    [
      'a prefix that is there twice',
      {
        prefix_routes: {
          routes: [
            { prefix: 'a', cluster: 'ring' },
            { prefix: 'A', cluster: 'ring' },
          ],
          case_insensitive: true,
        },
      },
      {},
      /prefix "A" is there twice/,
    ],
    ['no time', {}, { op_timeout: '0s' }, /op_timeout/],
  ] as const) {
    it(`is refused with ${what}`, () => assert.match(errors(fields as unknown as JsonObject, settings), fault));
  }
});
