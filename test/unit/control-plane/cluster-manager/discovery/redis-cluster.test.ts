// Who is asked for the slots of a Redis cluster and when, over servers that the test is and a clock that it turns.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { arrayOf, bulk, failure, integer, simple } from '../../../../../src/base/resp.ts';
import { RedisClusterDiscovery } from '../../../../../src/control-plane/cluster-manager/discovery/redis-cluster.ts';
import type { ServerCredentials } from '../../../../../src/snapshot/index.ts';
import { DiscoveryFixture, FAILED, found, target } from '../../../../support/dns-discovery.ts';
import { eventually } from '../../../../support/eventually.ts';

const REFRESH_MS = 5000;
const TIMEOUT_MS = 3000;
const REDIRECT_INTERVAL_MS = 2000;

/** A server of Redis whose answers the test gives. */
async function redis(t: TestContext) {
  const asked: string[] = [];
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => asked.push(bytes.toString()));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return { port, asked, answer: (...messages: Buffer[]) => void sockets.at(-1)!.write(Buffer.concat(messages)) };
}

const slots = (...ports: number[]): Buffer =>
  arrayOf(ports.map((port, at) => arrayOf([integer(at), integer(at), arrayOf([bulk('127.0.0.1'), integer(port)])])));

function discover(t: TestContext, port: number, credentials?: ServerCredentials) {
  const fixture = new DiscoveryFixture([target('127.0.0.1', { port })], {}, (name, seeds, stats, tools, listener) => {
    const settings = {
      kind: 'redis',
      seeds,
      refreshMs: REFRESH_MS,
      timeoutMs: TIMEOUT_MS,
      redirectIntervalMs: REDIRECT_INTERVAL_MS,
    } as const;
    const origin = { sourceAddress: undefined, systemCalls: undefined };
    return new RedisClusterDiscovery(
      name,
      settings,
      stats,
      { ...tools, origin, tls: undefined, credentials },
      listener,
    );
  });
  t.after(() => fixture.discovery.stop());
  const ports = (): number[][] =>
    fixture.updates.map((hosts) => hosts.map(({ address }) => (address.kind === 'ip' ? address.port : 0)));
  return { fixture, discovery: fixture.discovery as RedisClusterDiscovery, ports };
}

test('members are what a server says, until another answer says otherwise', async (t) => {
  const server = await redis(t);
  const { fixture, ports } = discover(t, server.port);
  await fixture.start();
  await eventually(() => server.asked.length === 1, 'the first question');
  assert.equal(server.asked[0], '*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n');
  assert.equal(fixture.readyCount, 0);
  server.answer(slots(server.port));
  await eventually(() => fixture.readyCount === 1, 'the first answer');
  assert.deepEqual(fixture.updates[0]![0]!.metadata, { 'envoy.clusters.redis': { slots: ['0-0'] } });
  for (const [answer, count] of [
    [slots(server.port), 1],
    [failure('ERR'), 1],
    [arrayOf([]), 1],
    [slots(server.port, server.port + 1), 2],
  ] as const) {
    const before = server.asked.length;
    fixture.clock.turn(REFRESH_MS);
    await eventually(() => server.asked.length > before, 'another question');
    const failures = fixture.count('update_failure') + fixture.count('update_success');
    server.answer(answer);
    await eventually(
      () => fixture.count('update_failure') + fixture.count('update_success') > failures,
      'what has become of it',
    );
    assert.equal(fixture.updates.length, count);
  }
  assert.deepEqual(ports(), [[server.port], [server.port, server.port + 1]]);
  assert.deepEqual(
    ['update_no_rebuild', 'update_empty', 'update_failure'].map((name) => fixture.count(name)),
    [1, 1, 2],
  );
  assert.equal(fixture.logged.filter((line) => line.includes('does not say who has which keys')).length, 1);
  assert.equal(fixture.logged.filter((line) => line.includes('says again who has which keys')).length, 1);
});

test('nobody waits longer for a server that says nothing', async (t) => {
  const server = await redis(t);
  const { fixture } = discover(t, server.port);
  await fixture.start();
  await eventually(() => server.asked.length === 1, 'the question');
  fixture.clock.turn(TIMEOUT_MS - 1);
  assert.equal(fixture.readyCount, 0);
  fixture.clock.turn(1);
  assert.equal(fixture.readyCount, 1);
  assert.match(fixture.logged.join('\n'), /no answer within 3000 ms/);
  fixture.clock.turn(REFRESH_MS);
  await eventually(() => server.asked.length === 2, 'another question');
});

test('servers that ask who comes are told first', async (t) => {
  const server = await redis(t);
  const { fixture } = discover(t, server.port, { username: '', password: 'secret' });
  await fixture.start();
  await eventually(() => server.asked.length === 1, 'the question');
  assert.match(server.asked[0]!, /^\*2\r\n\$4\r\nAUTH\r\n\$6\r\nsecret\r\n\*2\r\n\$7\r\nCLUSTER/);
  server.answer(failure('WRONGPASS'), failure('NOAUTH'));
  await eventually(() => fixture.count('update_failure') === 1, 'the failure');
  assert.match(fixture.logged.join('\n'), /answered "-WRONGPASS"/);
  assert.doesNotMatch(fixture.logged.join('\n'), /secret/);
  fixture.clock.turn(REFRESH_MS);
  await eventually(() => server.asked.length === 2, 'another question');
  server.answer(simple('OK'), slots(server.port));
  await eventually(() => fixture.updates.length === 1, 'the members');
});

test('a stranger that an answer names is a reason to ask, but not again and again', async (t) => {
  const server = await redis(t);
  const { fixture, discovery } = discover(t, server.port);
  await fixture.start();
  await eventually(() => server.asked.length === 1, 'the question');
  discovery.strangerNamed();
  server.answer(slots(server.port));
  await eventually(() => fixture.readyCount === 1, 'the answer');
  // Whoever was asked a moment ago has not known it.
  discovery.strangerNamed();
  discovery.strangerNamed();
  assert.equal(fixture.count('update_attempt'), 2);
  await eventually(() => server.asked.length === 2, 'another question');
  server.answer(slots(server.port));
  await eventually(() => fixture.count('update_no_rebuild') === 1, 'the same answer');
  fixture.clock.turn(REDIRECT_INTERVAL_MS - 1);
  discovery.strangerNamed();
  assert.equal(fixture.count('update_attempt'), 2);
  fixture.clock.turn(1);
  discovery.strangerNamed();
  assert.equal(fixture.count('update_attempt'), 3);
  await eventually(() => server.asked.length === 3, 'a third question');
  server.answer(slots(server.port, server.port + 1));
  await eventually(() => fixture.updates.length === 2, 'the stranger is a member');
});

test('a stop ends it all', async (t) => {
  const server = await redis(t);
  const { fixture, discovery } = discover(t, server.port);
  await fixture.start();
  await eventually(() => server.asked.length === 1, 'the question');
  discovery.stop();
  discovery.strangerNamed();
  fixture.clock.turn(REFRESH_MS * 2);
  assert.equal(fixture.count('update_attempt'), 1);
});

const named = (name: string, port: number): Buffer =>
  arrayOf([arrayOf([integer(0), integer(16_383), arrayOf([bulk(name), integer(port)])])]);

test('names that servers have for each other are looked up', async (t) => {
  const server = await redis(t);
  const { fixture, ports } = discover(t, server.port);
  fixture.resolver.script('redis-1.test', FAILED, found(['10.0.0.1', '10.0.0.2']));
  await fixture.start();
  await eventually(() => server.asked.length === 1, 'the question');
  server.answer(named('redis-1.test', 7000));
  await eventually(() => fixture.count('update_failure') === 1, 'the name without an address');
  assert.match(fixture.logged.join('\n'), /names "redis-1\.test", which has no address/);
  assert.equal(fixture.readyCount, 1);
  fixture.clock.turn(REFRESH_MS);
  await eventually(() => server.asked.length === 2, 'another question');
  server.answer(named('redis-1.test', 7000));
  await eventually(() => fixture.updates.length === 1, 'the members');
  assert.deepEqual(ports(), [[7000]]);
  const [host] = fixture.updates[0]!;
  assert.deepEqual([host!.address, host!.hostname], [{ kind: 'ip', ip: '10.0.0.1', port: 7000 }, 'redis-1.test']);
});

test('a name that is not found within the time of the question is not waited for', async (t) => {
  const server = await redis(t);
  const { fixture } = discover(t, server.port);
  const answered = Promise.withResolvers<void>();
  fixture.resolver.lookup = async (name) => {
    fixture.resolver.asked.push(name);
    await answered.promise;
    return found(['10.0.0.1']);
  };
  await fixture.start();
  await eventually(() => server.asked.length === 1, 'the question');
  server.answer(named('redis-1.test', 7000));
  await eventually(() => fixture.resolver.asked.length === 1, 'the lookup');
  fixture.clock.turn(TIMEOUT_MS);
  assert.equal(fixture.count('update_failure'), 1);
  answered.resolve();
  await answered.promise;
  fixture.clock.turn(REFRESH_MS);
  await eventually(() => server.asked.length === 2, 'another question');
  assert.equal(fixture.updates.length, 0, 'what comes too late counts for nothing');
});

test('its resolver is given back', async (t) => {
  const server = await redis(t);
  const { fixture } = discover(t, server.port);
  await fixture.start();
  assert.ok(fixture.holders > 0);
  fixture.discovery.stop();
  assert.equal(fixture.holders, 0);
});
