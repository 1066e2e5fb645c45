// The proxy within the process of its user.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { LogRecord, ProxyOptions, WeirError as WeirErrorType } from '../../../src/library/index.ts';
import { socketAddress } from '../../support/bootstrap.ts';
import { runProgram } from '../../support/child-process.ts';
import {
  bootstrapOf,
  ConfigError,
  clusterAt,
  createProxy,
  httpListener,
  LIBRARY_URL,
  NamedUpstream,
  textOf,
  WeirError,
} from '../../support/embedded.ts';
import { untilEqual } from '../../support/eventually.ts';

const ADMIN = { admin: { address: socketAddress('127.0.0.1', 0) } };

function simple(port: number, fields = {}) {
  return bootstrapOf([httpListener('http', 'web')], [clusterAt('web', port)], fields);
}

async function failureOf(work: Promise<unknown>): Promise<WeirErrorType> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof WeirError, String(error));
  return error;
}

describe('a proxy in this process', () => {
  it('serves, answers at its admin interface, and shows what it has counted', async () => {
    await using upstream = await NamedUpstream.start('web');
    await using proxy = await createProxy(simple(upstream.port, { ...ADMIN, stats_flush_on_admin: true }));
    assert.deepEqual([...proxy.listeners.keys()], ['http']);
    const { address, port, url } = proxy.listeners.get('http')!;
    assert.deepEqual([address, url], ['127.0.0.1', `http://127.0.0.1:${port}`]);
    assert.equal(await textOf(url), 'web');
    assert.equal(await textOf(`${proxy.admin!.url}/ready`), 'LIVE\n');
    // A worker may have answered before it counts.
    await untilEqual(1, () => proxy.stats.value('cluster.web.upstream_rq_200'), 'requests');
    assert.deepEqual(await proxy.stats.counters('cluster.web.upstream_rq_2'), {
      'cluster.web.upstream_rq_200': 1,
      'cluster.web.upstream_rq_2xx': 1,
    });
    const gauges = await proxy.stats.gauges('server.');
    assert.deepEqual([gauges['server.live'], gauges['server.concurrency']], [1, 1]);
    assert.equal(gauges['server.total_connections'] !== undefined && 'server.worker_restarts' in gauges, false);
    assert.ok(Object.keys(await proxy.stats.counters()).length > 100);
    const times = await proxy.stats.histogram('cluster.web.upstream_rq_time');
    assert.deepEqual([times!.unit, times!.cumulative.count], ['ms', 1]);
    assert.ok(times!.cumulative.quantiles([0.5])[0]! >= 0);
    assert.equal(await proxy.stats.histogram('cluster.web.upstream_rq'), undefined);
    assert.equal(proxy.stats.value('no.such.stat'), undefined);
  });

  it('is one of several, each with a configuration and counts of its own', async () => {
    await using first = await NamedUpstream.start('first');
    await using second = await NamedUpstream.start('second');
    await using one = await createProxy(simple(first.port));
    await using other = await createProxy(simple(second.port), { concurrency: 2 });
    assert.equal(await textOf(one.listeners.get('http')!.url), 'first');
    assert.equal(await textOf(other.listeners.get('http')!.url), 'second');
    assert.equal(await textOf(other.listeners.get('http')!.url), 'second');
    await untilEqual(2, () => other.stats.value('cluster.web.upstream_rq_200'), 'requests of the second');
    assert.equal(one.stats.value('cluster.web.upstream_rq_200'), 1);
    await one.close();
    assert.equal(await textOf(other.listeners.get('http')!.url), 'second');
    assert.equal(one.admin, undefined);
  });

  it('takes a file, and merges the text of an option over it', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-library-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'bootstrap.yaml');
    await using upstream = await NamedUpstream.start('web');
    writeFileSync(file, JSON.stringify(simple(1)));
    const configYaml = JSON.stringify({ static_resources: { clusters: [clusterAt('more', upstream.port)] } });
    await using proxy = await createProxy(file, { configYaml, serviceNode: 'me', statsTag: ['team:edge'] });
    assert.equal(proxy.stats.value('cluster_manager.active_clusters'), 2);
  });

  it('says what is wrong with a configuration as data, and leaves nothing behind', async (t) => {
    const wrong = { ...clusterAt('web', 80), lbPolicy: 'RINGS', connect_timeout: '-1s' };
    const error = await failureOf(createProxy(bootstrapOf([], [wrong])));
    assert.ok(error instanceof ConfigError);
    assert.deepEqual([error.name, error.code], ['ConfigError', 'WEIR_CONFIG_INVALID']);
    const faults = error.faults.map(({ path: at, value, file, line }) => ({ at, value, file, line }));
    assert.deepEqual(faults, [
      { at: 'static_resources.clusters[0].lb_policy', value: 'RINGS', file: '', line: 0 },
      { at: 'static_resources.clusters[0].connect_timeout', value: '-1s', file: '', line: 0 },
    ]);
    assert.match(error.message, /^2 errors\nstatic_resources\.clusters\[0\]\.lb_policy: "RINGS" is not one of/);
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-library-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'bootstrap.yaml');
    writeFileSync(file, 'static_resources:\n  clusters:\n  - name: web\n    lb_policy: RINGS\n');
    const ofFile = await failureOf(createProxy(file));
    assert.ok(ofFile instanceof ConfigError);
    const [fault] = ofFile.faults;
    assert.deepEqual([fault!.file, fault!.line, fault!.severity], [file, 4, 'error']);
    assert.equal('value' in fault!, false);
  });

  it('refuses what is no configuration', async () => {
    const cyclic = { node: { metadata: { list: [0, {}] } } };
    cyclic.node.metadata.list[1] = cyclic.node;
    const call = (): void => {};
    const thrown = { toJSON: () => assert.fail('no') };
    const cases: readonly (readonly [unknown, string, string, unknown?])[] = [
      ['', '', 'a bootstrap is an object, or the path of a file', ''],
      [undefined, '', 'a bootstrap is an object, or the path of a file'],
      [null, '', 'a bootstrap is an object, or the path of a file', null],
      [5, '', 'a bootstrap is an object, or the path of a file', 5],
      [cyclic, 'node.metadata.list[1]', 'an object that holds itself is no configuration', cyclic.node],
      [{ node: { metadata: { call } } }, 'node.metadata.call', 'a function is no configuration', call],
      [{ static_resources: { clusters: [{ name: thrown }] } }, '', 'the bootstrap cannot be written as JSON: no'],
    ];
    for (const [config, path, message, value] of cases) {
      const error = await failureOf(createProxy(config as string));
      assert.ok(error instanceof ConfigError, message);
      assert.equal(error.code, 'WEIR_CONFIG_INVALID');
      const { value: shown, ...fault } = error.faults[0]!;
      assert.deepEqual([error.faults.length, shown], [1, value]);
      assert.deepEqual(fault, { severity: 'error', path, message, file: '', line: 0, column: 0 });
    }
    const twice = { name: 'a' };
    const again = bootstrapOf([], [], { node: { metadata: { twice, once_more: twice } } });
    await (await createProxy(again)).close();
    assert.match((await failureOf(createProxy('/no/such.yaml'))).message, /^\/no\/such\.yaml: no such file$/);
  });

  it('reads numbers of 64 bits and bytes in the types that JavaScript has for them', async () => {
    const body = { inline_bytes: Buffer.from('made here') };
    const routes = [{ match: { prefix: '/' }, direct_response: { status: 200, body } }];
    const listener = httpListener('http', 'web');
    const [chain] = (listener as { filter_chains: { filters: { typed_config: object }[] }[] }).filter_chains;
    Object.assign(chain!.filters[0]!.typed_config, {
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    });
    const cluster = clusterAt('web', 1, { ring_hash_lb_config: { minimum_ring_size: 64n as unknown as number } });
    await using proxy = await createProxy(bootstrapOf([listener], [{ ...cluster, lb_policy: 'RING_HASH' }]));
    assert.equal(await textOf(proxy.listeners.get('http')!.url), 'made here');
  });

  it('refuses options that it does not know, and values that it cannot use', async () => {
    const cases: readonly (readonly [unknown, RegExp])[] = [
      [{ concurency: 2 }, /^unknown option concurency$/],
      [{ logPath: '/tmp/log' }, /^unknown option logPath$/],
      [{ concurrency: '2' }, /^option concurrency: expected a whole number from 0 to \d+, got string$/],
      [{ concurrency: 100_000 }, /^option concurrency: expected a whole number from 0 to 511, got 100000$/],
      [{ statsTag: 'a:b' }, /^option statsTag: expected a list of strings, got string$/],
      [{ adminReadOnly: 1 }, /^option adminReadOnly: expected a boolean, got 1$/],
      [{ serviceNode: 1 }, /^option serviceNode: expected a string, got 1$/],
      [{ logLevel: 'loud' }, /^invalid log level specified 'loud'/],
      [{ log: true }, /^option log: expected a function, got boolean$/],
      [{ signal: 5 }, /^option signal: expected an AbortSignal, got number$/],
      [null, /^options: expected an object, got null$/],
      [2, /^options: expected an object, got number$/],
      [[], /^options: expected an object, got a list$/],
    ];
    for (const [options, message] of cases) {
      const error = await failureOf(createProxy({}, options as ProxyOptions));
      assert.equal(error.code, 'WEIR_OPTIONS');
      assert.match(error.message, message);
    }
  });

  it('refuses a grace that is no time, and what no end or drain knows, and runs on', async () => {
    await using upstream = await NamedUpstream.start('web');
    await using proxy = await createProxy(simple(upstream.port));
    const wrong: readonly (readonly [(options: object) => Promise<void>, unknown, RegExp])[] = [
      [(options) => proxy.close(options), { grace: 5 }, /^unknown option grace; allowed: graceMs$/],
      [(options) => proxy.close(options), 5, /^options: expected an object, got number$/],
      [(options) => proxy.drain(options), { immediate: true }, /^unknown option immediate; allowed: immediately$/],
      [
        (options) => proxy.drain(options),
        { immediately: 'no' },
        /^option immediately: expected a boolean, got string$/,
      ],
      [(options) => proxy.drain(options), null, /^options: expected an object, got null$/],
    ];
    for (const [ask, options, message] of wrong) {
      const error = await failureOf(ask(options as object));
      assert.equal(error.code, 'WEIR_OPTIONS');
      assert.match(error.message, message);
    }
    for (const graceMs of [-1, Number.NaN, Number.POSITIVE_INFINITY, '1']) {
      const error = await failureOf(proxy.close({ graceMs: graceMs as number }));
      assert.equal(error.code, 'WEIR_OPTIONS');
      assert.match(error.message, /^option graceMs: expected a number of milliseconds from 0 on, got /);
    }
    assert.equal(await textOf(proxy.listeners.get('http')!.url), 'web');
    assert.equal(proxy.stats.value('listener_manager.total_listeners_draining'), 0);
    await proxy.applyBootstrap({});
  });

  it('tells that an address is taken, and leaves the host as it was', async () => {
    // Where no other test is, so that the port stays free.
    const ip = '127.0.0.79';
    const taken = createServer().listen(0, ip);
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    const config = bootstrapOf(
      [httpListener('http', 'web', { address: socketAddress(ip, port) })],
      [clusterAt('web', 1)],
    );
    const error = await failureOf(createProxy(config));
    assert.equal(error.code, 'WEIR_LISTEN_FAILED');
    assert.match(error.message, /EADDRINUSE/);
    taken.close();
    await once(taken, 'close');
    await using proxy = await createProxy(config);
    assert.equal(proxy.listeners.get('http')!.port, port);
  });

  it('gives its log to a function, in levels and layout of its own', async () => {
    const lines: [string, LogRecord][] = [];
    const log: ProxyOptions['log'] = (line, record) => {
      lines.push([line, record]);
      throw new Error('of the host');
    };
    const options = { log, logLevel: 'warning', componentLogLevel: 'config:info', logFormat: '%l|%n|%g|%v' } as const;
    await using proxy = await createProxy(simple(1), options);
    const [line, record] = lines.find(([text]) => text.includes('accepts on'))!;
    assert.match(
      line,
      /^info\|config\|src\/control-plane\/listener-manager\/listener-manager\.ts\|listener http accepts/,
    );
    assert.deepEqual([record.level, record.component, record.threadId], ['info', 'config', 0]);
    assert.ok(Math.abs(record.timeMs - Date.now()) < 3_600_000);
    assert.deepEqual(
      lines.filter(([, { level, component }]) => level === 'info' && component !== 'config'),
      [],
    );
    assert.deepEqual(
      proxy.warnings.map(({ severity }) => severity),
      [],
    );
  });

  it('keeps the warnings about its configuration', async () => {
    await using proxy = await createProxy({ ...simple(1), flags_path: '/tmp/flags' });
    assert.deepEqual(
      proxy.warnings.map(({ path: at, severity }) => [at, severity]),
      [['flags_path', 'warning']],
    );
  });

  it('does not start for a signal that is aborted, and ends with one that is aborted later', async () => {
    const reason = new Error('changed my mind');
    await assert.rejects(createProxy(simple(1), { signal: AbortSignal.abort(reason) }), reason);
    const early = new AbortController();
    const starting = createProxy(simple(1), { signal: early.signal });
    early.abort(reason);
    await assert.rejects(starting, reason);
    const late = new AbortController();
    const proxy = await createProxy(simple(1), { signal: late.signal });
    late.abort();
    await proxy.closed;
    assert.equal(proxy.listeners.size, 0);
  });

  it('has neither listeners nor an admin interface any more once it is closed', async () => {
    const proxy = await createProxy(simple(1, ADMIN));
    assert.equal(proxy.listeners.size, 1);
    const closed = proxy.close();
    // Its ports may be somebody else's from now on.
    assert.equal(proxy.listeners.size, 0);
    await closed;
    assert.equal(proxy.admin, undefined);
  });

  it('logs what is doubtful about its options, and nothing about those that it has not', async () => {
    const lines: string[] = [];
    const log = (line: string): void => void lines.push(line);
    await (await createProxy(simple(1, ADMIN), { log, logFormat: '%l %Q %v', drainTimeS: 3600 })).close();
    const warnings = lines.filter((line) => line.startsWith('warning'));
    assert.equal(warnings.length, 1, warnings.join('\n'));
    assert.match(warnings[0]!, /^warning %Q --log-format: '%Q' is no flag/);
  });

  it('ends when its admin interface is told to quit, alone', async () => {
    await using other = await createProxy(simple(1, ADMIN));
    const proxy = await createProxy(simple(1, ADMIN));
    const response = await fetch(`${proxy.admin!.url}/quitquitquit`, { method: 'POST' });
    assert.equal(response.status, 200);
    await proxy.closed;
    assert.equal(await textOf(`${other.admin!.url}/ready`), 'LIVE\n');
  });

  it('cuts what is under way when the grace is over, and can be closed again', async (t) => {
    const held: Socket[] = [];
    const silent = createServer((socket) => void held.push(socket.on('error', () => {}))).listen(0, '127.0.0.1');
    t.after(() => {
      silent.close();
      for (const socket of held) socket.destroy();
    });
    await once(silent, 'listening');
    const proxy = await createProxy(simple((silent.address() as AddressInfo).port));
    const client = connect(proxy.listeners.get('http')!.port, '127.0.0.1').on('error', () => {});
    const isCut = new Promise((resolve) => client.once('close', resolve));
    const reached = once(silent, 'connection');
    client.resume().write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await reached;
    await Promise.all([proxy.close({ graceMs: 0 }), proxy.close(), isCut]);
    await proxy.close();
  });

  it('drains: nobody connects any more, and it resolves with the last connection', async () => {
    await using upstream = await NamedUpstream.start('web');
    await using proxy = await createProxy(simple(upstream.port), { drainTimeS: 0 });
    const { port, url } = proxy.listeners.get('http')!;
    const client = connect(port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await once(client, 'data');
    let isDrained = false;
    const drained = proxy.drain({ immediately: true }).then(() => {
      isDrained = true;
    });
    await untilEqual(1, () => proxy.stats.value('listener_manager.listener_stopped'), 'stopped listeners');
    await untilEqual('refused', () => textOf(url).catch(() => 'refused'), 'a new connection');
    assert.equal(isDrained, false);
    client.destroy();
    await drained;
    await using idle = await createProxy(simple(upstream.port), { drainTimeS: 0 });
    await idle.drain();
    await assert.rejects(textOf(idle.listeners.get('http')!.url));
  });

  it('prints nothing, takes no signals, and leaves nothing that keeps the process', async () => {
    const script = `
      import { createProxy } from ${JSON.stringify(LIBRARY_URL)};
      const before = process.eventNames().filter((name) => typeof name === 'string').sort().join();
      const proxies = await Promise.all([1, 2].map((port) => createProxy(${JSON.stringify(simple(1, ADMIN))})));
      const during = process.eventNames().filter((name) => typeof name === 'string').sort().join();
      if (before !== during) throw new Error('listens to ' + during);
      await createProxy({ static_resources: { clusters: [{}] } }).then(() => { throw new Error('started'); }, () => {});
      await Promise.all(proxies.map((proxy) => proxy.close()));
    `;
    const { code, stdout, stderr } = await runProgram(process.execPath, ['--input-type=module', '-e', script]);
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '', stderr: '' });
  });
});
