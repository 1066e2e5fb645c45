// Another bootstrap for a proxy that runs.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { socketAddress } from '../../support/bootstrap.ts';
import {
  bootstrapOf,
  ConfigError,
  clusterAt,
  createProxy,
  httpListener,
  NamedUpstream,
  textOf,
  WeirError,
} from '../../support/embedded.ts';
import { untilEqual } from '../../support/eventually.ts';

const ADMIN = { admin: { address: socketAddress('127.0.0.1', 0) } };

/** Of this file alone: other tests have ports of 127.0.0.1, where one that is free would not stay so. */
const IP = '127.0.0.78';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, IP);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Over a connection that exists in the kernel when this returns. @returns the body, or what has gone wrong. */
async function answerAt(port: number): Promise<string> {
  const client = connect(port, IP).setEncoding('utf8');
  client.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  try {
    const [text] = await Promise.all([
      client.reduce((sum: string, part: string) => sum + part, ''),
      once(client, 'end'),
    ]);
    return text.slice(text.indexOf('\r\n\r\n') + 4);
  } catch (error) {
    return String(error);
  }
}

function at(port: number) {
  return { address: socketAddress(IP, port) };
}

describe('another bootstrap', () => {
  it('is counted for what it has of deprecated fields, like the first', async () => {
    const older = { ...clusterAt('one', 1), max_requests_per_connection: 5 };
    await using proxy = await createProxy(bootstrapOf([], [older]));
    const uses = () => proxy.stats.value('runtime.deprecated_feature_use');
    assert.equal(uses(), 1);
    await proxy.applyBootstrap(bootstrapOf([], [older, { ...clusterAt('two', 1), max_requests_per_connection: 5 }]));
    assert.equal(uses(), 3);
    await proxy.applyBootstrap(bootstrapOf([], []));
    assert.equal(uses(), 3);
    const refused = { ...bootstrapOf([], [older]), admin: { address: socketAddress(IP, 0) } };
    await assert.rejects(proxy.applyBootstrap(refused), { code: 'WEIR_CANNOT_CHANGE' });
    assert.equal(uses(), 3);
  });

  it('brings and takes away clusters and listeners, and leaves the others alone', async () => {
    await using first = await NamedUpstream.start('first');
    await using second = await NamedUpstream.start('second');
    const kept = httpListener('kept', 'one');
    const one = clusterAt('one', first.port);
    await using proxy = await createProxy(bootstrapOf([kept, httpListener('gone', 'one')], [one], ADMIN));
    const { url } = proxy.listeners.get('kept')!;
    const goneUrl = proxy.listeners.get('gone')!.url;
    assert.equal(await textOf(goneUrl), 'first');
    const fresh = httpListener('fresh', 'two');
    await proxy.applyBootstrap(bootstrapOf([kept, fresh], [one, clusterAt('two', second.port)], ADMIN));
    assert.deepEqual([...proxy.listeners.keys()].sort(), ['fresh', 'kept']);
    assert.equal(proxy.listeners.get('kept')!.url, url);
    assert.deepEqual([await textOf(url), await textOf(proxy.listeners.get('fresh')!.url)], ['first', 'second']);
    await untilEqual('refused', () => textOf(goneUrl).catch(() => 'refused'), 'a connection to what is gone');
    const dump = JSON.parse(await textOf(`${proxy.admin!.url}/config_dump?resource=static_clusters`));
    assert.equal(dump.configs.length, 2);
    const bootstrap = JSON.parse(await textOf(`${proxy.admin!.url}/config_dump?mask=bootstrap`));
    assert.match(JSON.stringify(bootstrap), /"fresh"/);
    await proxy.applyBootstrap(bootstrapOf([kept], [one], ADMIN));
    await untilEqual(1, () => proxy.stats.value('cluster_manager.active_clusters'), 'clusters');
    assert.equal(proxy.stats.value('listener_manager.listener_added'), 3);
    assert.equal(proxy.stats.value('listener_manager.listener_modified'), 0);
  });

  it('replaces a listener on the port that it has, and a cluster, while nobody is refused', async () => {
    await using first = await NamedUpstream.start('first');
    await using second = await NamedUpstream.start('second');
    const port = await freePort();
    const config = (upstream: NamedUpstream, cluster: string) =>
      bootstrapOf(
        [httpListener('http', cluster, at(port))],
        [clusterAt(cluster, upstream.port, { connect_timeout: cluster === 'one' ? '1s' : '2s' })],
      );
    await using proxy = await createProxy(config(first, 'one'), { drainTimeS: 1 });
    const { url } = proxy.listeners.get('http')!;
    let isOver = false;
    const answers = new Set<string>();
    const asking = (async () => {
      while (!isOver) answers.add(await textOf(url));
    })();
    for (const round of [1, 2, 3]) {
      await proxy.applyBootstrap(round % 2 === 0 ? config(first, 'one') : config(second, 'two'));
      await untilEqual(round % 2 === 0 ? 'first' : 'second', () => textOf(url), 'the answer');
    }
    isOver = true;
    await asking;
    assert.deepEqual([...answers].sort(), ['first', 'second']);
    assert.equal(proxy.stats.value('listener_manager.listener_modified'), 3);
  });

  it('has one worker take in the clients that wait at others when it is to accept alone', async () => {
    await using upstream = await NamedUpstream.start('web');
    for (const port of [0, await freePort()]) {
      const config = (reusePort: boolean) =>
        bootstrapOf(
          [httpListener('http', 'web', { ...at(port), enable_reuse_port: reusePort })],
          [clusterAt('web', upstream.port)],
        );
      await using proxy = await createProxy(config(true), { concurrency: 4 });
      const bound = proxy.listeners.get('http')!.port;
      const update = proxy.applyBootstrap(config(false));
      const isDone = update.then(() => true);
      const answers: Promise<string>[] = [];
      // There are always some that no worker has accepted yet.
      do for (let n = 0; n < 10; n++) answers.push(answerAt(bound));
      while (!(await Promise.race([isDone, nextTurn(false)])));
      assert.deepEqual([...new Set(await Promise.all(answers))], ['web']);
      assert.equal(proxy.listeners.get('http')!.port, bound);
      const accepted = (worker: number) =>
        proxy.stats.value(`listener.${IP}_${port}.worker_${worker}.downstream_cx_total`);
      const before = [1, 2, 3].map(accepted);
      for (let n = 0; n < 20; n++) assert.equal(await answerAt(bound), 'web');
      assert.deepEqual([1, 2, 3].map(accepted), before);
    }
  });

  it('keeps a cluster that is gone for connections of before, as long as there are any', async () => {
    await using first = await NamedUpstream.start('first');
    await using second = await NamedUpstream.start('second');
    const port = await freePort();
    const config = (upstream: NamedUpstream, cluster: string) =>
      bootstrapOf([httpListener('http', cluster, at(port))], [clusterAt(cluster, upstream.port)]);
    await using proxy = await createProxy(config(first, 'one'));
    const client = connect(port, IP).setEncoding('utf8');
    const answer = async (): Promise<string> => {
      client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
      return String((await once(client, 'data'))[0]);
    };
    assert.match(await answer(), /first$/);
    await proxy.applyBootstrap(config(second, 'two'));
    assert.equal(await textOf(proxy.listeners.get('http')!.url), 'second');
    assert.equal(proxy.stats.value('cluster_manager.active_clusters'), 2);
    assert.match(await answer(), /first$/);
    client.destroy();
    await untilEqual(1, () => proxy.stats.value('cluster_manager.active_clusters'), 'clusters');
  });

  it('has connections of before end with a response, or behind the drain time, whatever they do', async () => {
    await using first = await NamedUpstream.start('first');
    await using second = await NamedUpstream.start('second');
    for (const [drainStrategy, drainTimeS] of [
      ['immediate', 600],
      ['gradual', 1],
    ] as const) {
      const port = await freePort();
      const config = (upstream: NamedUpstream, cluster: string) =>
        bootstrapOf([httpListener('http', cluster, at(port))], [clusterAt(cluster, upstream.port)]);
      await using proxy = await createProxy(config(first, 'one'), { drainStrategy, drainTimeS });
      const client = connect(port, IP).setEncoding('utf8');
      const request = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
      client.write(request);
      assert.match(String((await once(client, 'data'))[0]), /first$/);
      await proxy.applyBootstrap(config(second, 'two'));
      if (drainStrategy === 'immediate') {
        client.write(request);
        assert.match(String((await once(client, 'data'))[0]), /\r\nconnection: close\r\n[\s\S]*first$/);
      }
      await once(client, 'end');
      client.destroy();
      assert.equal(await textOf(proxy.listeners.get('http')!.url), 'second');
    }
  });

  it('changes members and settings of a cluster under the same listener', async () => {
    await using first = await NamedUpstream.start('first');
    await using second = await NamedUpstream.start('second');
    const listener = httpListener('http', 'web');
    await using proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', first.port)]));
    const { url } = proxy.listeners.get('http')!;
    await proxy.applyBootstrap(bootstrapOf([listener], [clusterAt('web', second.port)]));
    await untilEqual('second', () => textOf(url), 'the answer of the new member');
    const settings = { lb_policy: 'RANDOM', circuit_breakers: { thresholds: [{ max_connections: 7 }] } };
    await proxy.applyBootstrap(bootstrapOf([listener], [clusterAt('web', first.port, settings)]));
    await untilEqual('first', () => textOf(url), 'the answer of the new cluster');
    assert.equal(proxy.stats.value('cluster_manager.cluster_modified'), 1);
  });

  it('takes an address over by another name, and knows a listener without one by its address', async () => {
    await using upstream = await NamedUpstream.start('web');
    const port = await freePort();
    const clusters = [clusterAt('web', upstream.port)];
    const { name: _, ...unnamed } = httpListener('unnamed', 'web', at(await freePort())) as { name: string };
    await using proxy = await createProxy(bootstrapOf([httpListener('old', 'web', at(port)), unnamed], clusters));
    await proxy.applyBootstrap(bootstrapOf([httpListener('new', 'web', at(port)), unnamed], clusters));
    assert.ok(proxy.listeners.has('new') && !proxy.listeners.has('old'));
    assert.equal(proxy.listeners.size, 2);
    assert.equal(await textOf(proxy.listeners.get('new')!.url), 'web');
    assert.equal(proxy.stats.value('listener_manager.listener_added'), 3);
  });

  it('changes runtime layers, and keeps what an operator has written', async () => {
    const layers = (value: number) => ({
      ...ADMIN,
      layered_runtime: {
        layers: [
          { name: 'fixed', static_layer: { 'a.key': value } },
          { name: 'admin', admin_layer: {} },
        ],
      },
    });
    await using proxy = await createProxy({ ...layers(1) });
    await fetch(`${proxy.admin!.url}/runtime_modify?b.key=5`, { method: 'POST' });
    await proxy.applyBootstrap({ ...layers(2) });
    const { entries } = JSON.parse(await textOf(`${proxy.admin!.url}/runtime`));
    assert.deepEqual([entries['a.key'].final_value, entries['b.key'].final_value], ['2', '5']);
  });

  it('names what cannot change, and changes nothing then', async () => {
    await using upstream = await NamedUpstream.start('web');
    const config = bootstrapOf([httpListener('http', 'web')], [clusterAt('web', upstream.port)], ADMIN);
    await using proxy = await createProxy(config);
    const other = bootstrapOf([], [], {
      admin: { address: socketAddress('127.0.0.1', 1) },
      node: { id: 'other' },
      stats_flush_interval: '9s',
      header_prefix: 'x-other',
    });
    const error = await proxy.applyBootstrap(other).catch((reason: unknown) => reason);
    assert.ok(error instanceof ConfigError);
    assert.equal(error.code, 'WEIR_CANNOT_CHANGE');
    assert.deepEqual(error.faults.map(({ path }) => path).sort(), [
      'admin',
      'header_prefix',
      'node',
      'stats_flush_interval',
    ]);
    const wrong = await proxy.applyBootstrap(bootstrapOf([{}], [])).catch((reason: unknown) => reason);
    assert.ok(wrong instanceof ConfigError && wrong.code === 'WEIR_CONFIG_INVALID');
    assert.equal(await textOf(proxy.listeners.get('http')!.url), 'web');
  });

  it('undoes what it has changed when an address cannot be had', async () => {
    await using upstream = await NamedUpstream.start('web');
    const taken = createServer().listen(0, IP);
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const listeners = [httpListener('a', 'web'), httpListener('b', 'web')];
    await using proxy = await createProxy(bootstrapOf(listeners, [clusterAt('web', upstream.port)]));
    const urls = [...proxy.listeners.values()].map(({ url }) => url);
    const next = [
      httpListener('a', 'web', { per_connection_buffer_limit_bytes: 65_536 }),
      httpListener('c', 'more', at(port)),
    ];
    const clusters = [clusterAt('web', 1), clusterAt('more', upstream.port)];
    const error = await proxy.applyBootstrap(bootstrapOf(next, clusters)).catch((reason: unknown) => reason);
    assert.ok(error instanceof WeirError && error.code === 'WEIR_LISTEN_FAILED', String(error));
    assert.match(error.message, /EADDRINUSE/);
    taken.close();
    assert.deepEqual([...proxy.listeners.keys()].sort(), ['a', 'b']);
    assert.equal(proxy.stats.value('cluster_manager.active_clusters'), 1);
    for (const { url } of proxy.listeners.values()) await untilEqual('web', () => textOf(url), 'the answer');
    assert.ok(urls.includes(proxy.listeners.get('b')!.url));
  });

  it('comes after those that came before, and not into a proxy that has ended', async () => {
    await using upstream = await NamedUpstream.start('web');
    const config = (...names: string[]) =>
      bootstrapOf(
        names.map((name) => httpListener(name, 'web')),
        [clusterAt('web', upstream.port)],
      );
    await using proxy = await createProxy(config('a'));
    await Promise.all([['b'], ['b', 'c'], ['d']].map((names) => proxy.applyBootstrap(config(...names))));
    assert.deepEqual([...proxy.listeners.keys()], ['d']);
    const client = connect(proxy.listeners.get('d')!.port, '127.0.0.1').on('error', () => {});
    await once(client, 'connect');
    const [applied, closed] = await Promise.allSettled([
      proxy.applyBootstrap(config('e')),
      proxy.close({ graceMs: 0 }),
    ]);
    assert.equal(closed.status, 'fulfilled');
    if (applied.status === 'rejected') assert.equal(applied.reason.code, 'WEIR_STOPPED');
    client.destroy();
    await assert.rejects(proxy.applyBootstrap(config('f')), { code: 'WEIR_STOPPED' });
  });
});
