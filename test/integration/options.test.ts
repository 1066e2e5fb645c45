// What options of the command line do to the running program, seen from outside.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { localAddress } from '../../src/base/local-address.ts';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import {
  clusterNamed,
  httpFilter,
  type Json,
  type JsonObject,
  listenerWith,
  ROUTER,
  socketAddress,
  tapFilter,
} from '../support/bootstrap.ts';
import { runProgram } from '../support/child-process.ts';
import { runWeir, startWeir, type WeirProcess } from '../support/weir-process.ts';

const ADMIN = { admin: { address: socketAddress('127.0.0.1', 0) } };
const MAIN = path.join(PACKAGE_ROOT, process.env.WEIR_TEST_MAIN ?? 'src/main.ts');
const folder = mkdtempSync(path.join(tmpdir(), 'weir-options-'));
after(() => rmSync(folder, { recursive: true, force: true }));

interface ServerInfo {
  readonly command_line_options: Readonly<Record<string, unknown>>;
  readonly node: {
    readonly id: string;
    readonly cluster: string;
    readonly locality: Readonly<Record<string, string>>;
    readonly extensions: readonly { name: string; category: string; disabled: boolean }[];
  };
}

describe('--enable-core-dump', () => {
  /** Makes the process one that may leave no core file, and tells at its end whether it may. */
  const PRELOADED = `
    import { dlopen } from 'node:ffi';
    const signature = { arguments: ['i32', 'u64', 'u64', 'u64', 'u64'], return: 'i32' };
    const { prctl } = dlopen(null, { prctl: signature }).functions;
    prctl(4, 0n, 0n, 0n, 0n);
    process.once('exit', () => process.stdout.write('dumpable ' + prctl(3, 0n, 0n, 0n, 0n) + '\\n'));
  `;

  for (const [args, dumpable] of [
    [[], 0],
    [['--enable-core-dump'], 1],
  ] as const) {
    it(`decides whether the process may leave a core file: ${args.join() || 'not given'}`, async () => {
      const file = path.join(folder, 'preloaded.mjs');
      writeFileSync(file, PRELOADED);
      const flags = ['--disable-warning=ExperimentalWarning', '--import', file, MAIN];
      const checked = ['--mode', 'validate', '--config-yaml', 'node: {}', ...args];
      const { stdout, stderr } = await runProgram(process.execPath, [...flags, ...checked]);
      assert.match(stdout, new RegExp(`dumpable ${dumpable}\n`));
      assert.equal(/\[info\]\[misc\].* core dump enabled\n/.test(stderr), dumpable === 1);
    });
  }
});

describe('the number of workers', () => {
  for (const { args, workers } of [
    { args: [], workers: cpus().length },
    { args: ['--cpuset-threads'], workers: 1 },
  ]) {
    it(`is ${args.join() || 'that of the hardware'} on a CPU set of one`, async () => {
      const start = {
        configYaml: JSON.stringify(ADMIN),
        args,
        choosesConcurrency: true,
        runBy: ['taskset', '-c', '0'],
      };
      await using weir = await startWeir(start);
      assert.equal((await serverInfo(weir)).command_line_options.concurrency, workers);
      assert.equal(await weir.stat('server.concurrency'), workers);
    });
  }
});

describe('--local-address-ip-version', () => {
  it('chooses the address that stands for clients on this machine in X-Forwarded-For', async (t) => {
    const seen: unknown[] = [];
    const upstream = createHttpServer((request, response) => {
      seen.push(request.headers['x-forwarded-for']);
      response.end();
    });
    t.after(() => upstream.close());
    upstream.listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const { port } = upstream.address() as { port: number };
    const configYaml = JSON.stringify({ ...ADMIN, ...proxyTo(port, [ROUTER]) });
    for (const version of ['v4', 'v6'] as const) {
      await using weir = await startWeir({ configYaml, args: ['--local-address-ip-version', version] });
      const { port: own } = (await weir.listeners()).get('main')!;
      await (await fetch(`http://127.0.0.1:${own}/`)).text();
      await (await fetch(`http://127.0.0.1:${own}/`, { headers: { 'x-forwarded-for': '192.0.2.1' } })).text();
    }
    const addresses = [localAddress('v4'), localAddress('v6')];
    assert.deepEqual(
      seen,
      addresses.flatMap((address) => [address, `192.0.2.1,${address}`]),
    );
  });
});

describe('--mode init_only', () => {
  it('starts everything, and exits', async () => {
    const file = path.join(folder, 'init-address');
    const configYaml = JSON.stringify({ ...ADMIN, ...proxyTo(1, [ROUTER]) });
    const args = ['--mode', 'init_only', '--concurrency', '1', '--admin-address-path', file];
    const { code, stderr } = await runWeir([...args, '--config-yaml', configYaml]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /\[main\].* exiting\n$/);
    assert.match(readFileSync(file, 'utf8'), /^127\.0\.0\.1:\d+$/);
  });

  it('says what does not start', async () => {
    await using blocker = createServer().listen(0, '127.0.0.1');
    await once(blocker, 'listening');
    const { port } = blocker.address() as { port: number };
    const resources = { listeners: [listenerWith([httpFilter({})], { address: socketAddress('127.0.0.1', port) })] };
    const configYaml = JSON.stringify({ ...ADMIN, static_resources: resources });
    const { code, stderr } = await runWeir(['--mode', 'init_only', '--concurrency', '1', '--config-yaml', configYaml]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`error adding listener '127.0.0.1:${port}'`));
  });
});

function disabling(names: string): string[] {
  return ['--disable-extensions', names];
}

describe('--disable-extensions', () => {
  it('marks what it disables, and says what it cannot', async () => {
    const names =
      'envoy.filters.http/envoy.filters.http.tap,filters.http,envoy.filters.http/acme,filters.network/tcp_proxy';
    const configYaml = JSON.stringify({ ...ADMIN, ...proxyTo(1, [ROUTER]) });
    await using weir = await startWeir({ configYaml, args: disabling(names) });
    const info = await serverInfo(weir);
    assert.deepEqual(info.command_line_options.disabled_extensions, names.split(','));
    const disabled = info.node.extensions.filter((extension) => extension.disabled);
    assert.deepEqual(disabled, [
      { name: 'proxy.filters.http.tap', category: 'proxy.filters.http', disabled: true },
      { name: 'proxy.filters.network.tcp_proxy', category: 'proxy.filters.network', disabled: true },
    ]);
    const dump = JSON.parse(await weir.admin('/config_dump?mask=bootstrap.node.extensions')) as BootstrapDump;
    const dumped = dump.configs[0]!.bootstrap!.node.extensions.filter((extension) => extension.disabled);
    assert.deepEqual(
      dumped.map(({ name }) => name),
      disabled.map(({ name }) => name),
    );
    const { stderr } = await weir.stop();
    assert.match(stderr, /\[info\]\[main\].* disabled extension 'envoy\.filters\.http\/envoy\.filters\.http\.tap'\n/);
    assert.match(stderr, /\[info\]\[main\].* disabled extension 'filters\.network\/tcp_proxy'\n/);
    assert.match(stderr, /\[warning\]\[main\].* failed to disable invalid extension name 'filters\.http'\n/);
    assert.match(stderr, /\[warning\]\[main\].* failed to disable unknown extension 'envoy\.filters\.http\/acme'\n/);
  });

  it('refuses in both modes what uses a disabled extension', async () => {
    const configYaml = JSON.stringify({ ...ADMIN, ...proxyTo(1, [tapFilter('one'), ROUTER]) });
    for (const mode of ['serve', 'validate']) {
      const args = [...disabling('envoy.filters.http/envoy.filters.http.tap'), '--mode', mode];
      const { code, stderr } = await runWeir([...args, '--config-yaml', configYaml]);
      assert.equal(code, 1, stderr);
      assert.match(
        stderr,
        /http_filters\[0\]\.typed_config: "filters\.http\.tap" is disabled by --disable-extensions\n/,
      );
    }
  });
});

describe('options that name the node', () => {
  it('go before the bootstrap', async () => {
    const node = { id: 'one', cluster: 'own', locality: { zone: 'z1', region: 'r1' } };
    const configYaml = JSON.stringify({ ...ADMIN, node });
    const args = ['--service-node', 'two', '--service-cluster=edge', '--service-zone', 'z2'];
    await using weir = await startWeir({ configYaml, args });
    const { id, cluster, locality } = (await serverInfo(weir)).node;
    assert.deepEqual(
      { id, cluster, locality },
      {
        id: 'two',
        cluster: 'edge',
        locality: { region: 'r1', zone: 'z2', sub_zone: '' },
      },
    );
  });
});

describe('options of the log', () => {
  const checked = async (args: readonly string[]): Promise<string> => {
    const { code, stderr } = await runWeir(['--mode', 'validate', '--config-yaml', 'node: {}', ...args]);
    assert.equal(code, 0, stderr);
    return stderr;
  };

  it('--log-level says which lines there are', async () => {
    const args = ['--enable-core-dump', ...disabling('filters.http')];
    const [info, warning, off] = await Promise.all(
      [[], ['-l', 'warn'], ['--log-level=off']].map((level) => checked([...args, ...level])),
    );
    assert.match(info!, /\[info\]\[misc\].* core dump enabled\n/);
    assert.match(warning!, /^\[.*\[warning\]\[main\].* failed to disable invalid extension name 'filters\.http'\n$/);
    assert.equal(off, '');
  });

  it('--component-log-level says it of single components', async () => {
    const args = ['--enable-core-dump', ...disabling('filters.http'), '--log-level', 'error'];
    const stderr = await checked([...args, '--component-log-level', 'misc:info,upstream:debug']);
    assert.match(stderr, /^\[.*\[info\]\[misc\].* core dump enabled\n$/);
  });

  it('--log-format-escaped writes quotes as C has them', async () => {
    const args = [...disabling('filters.http'), '--log-format', '%v'];
    const lines = [await checked(args), await checked([...args, '--log-format-escaped'])];
    assert.deepEqual(lines, [
      "failed to disable invalid extension name 'filters.http'\n",
      "failed to disable invalid extension name \\'filters.http\\'\n",
    ]);
  });
});

describe('unknown fields', () => {
  const layer = path.join(folder, 'layer.yaml');
  const far = { name: 'far', rtds_layer: { name: 'rtds', rtds_config: { path_config_source: { path: layer } } } };
  const resource = '{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: rtds, layer: {some.key: 7}}';
  const configYaml = JSON.stringify({ ...ADMIN, layered_runtime: { layers: [far] }, odd: 1 });
  writeFileSync(layer, `version_info: v1\nresources:\n- ${resource}\nodd: 1\n`);

  for (const { args, dynamic } of [
    { args: [], dynamic: 1 },
    { args: ['--ignore-unknown-dynamic-fields'], dynamic: 0 },
  ]) {
    it(`of a bootstrap pass with --allow-unknown-fields; of discovery: ${args.join() || 'a warning'}`, async () => {
      await using weir = await startWeir({ configYaml, args: ['--allow-unknown-fields', ...args] });
      assert.equal(await weir.stat('server.static_unknown_fields'), 1);
      assert.equal(await weir.stat('server.dynamic_unknown_fields'), dynamic);
      assert.match(await weir.admin('/runtime'), /"final_value": "7"/);
      const { stderr } = await weir.stop();
      assert.equal(stderr.split('\n').filter((line) => line.includes('odd')).length, 1 + dynamic, stderr);
    });
  }
});

describe('options of older start scripts', () => {
  it('are accepted, with a warning where something was promised', async () => {
    const file = path.join(folder, 'older.yaml');
    writeFileSync(file, 'node: {}\n');
    const args = ['--max-stats', '1000', '--max-obj-name-len', '100', '--use-fake-symbol-table', '1'];
    const { code, stdout, stderr } = await runWeir(['--mode=validate', '--config-path', file, ...args]);
    assert.deepEqual([code, stdout], [0, `configuration '${file}' OK\n`]);
    const warned = [...stderr.matchAll(/\[warning\].* --(\S+) is not supported by this build and has no effect\n/g)];
    assert.deepEqual(
      warned.map(([, name]) => name),
      ['max-stats', 'max-obj-name-len'],
    );
  });
});

interface BootstrapDump {
  readonly configs: readonly { readonly bootstrap?: Pick<ServerInfo, 'node'> }[];
}

async function serverInfo(weir: WeirProcess): Promise<ServerInfo> {
  return JSON.parse(await weir.admin('/server_info')) as ServerInfo;
}

function proxyTo(port: number, http_filters: readonly Json[]): JsonObject {
  const virtualHost = { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'web' } }] };
  const route_config = { virtual_hosts: [virtualHost] };
  const filter = httpFilter({ route_config, http_filters, use_remote_address: true });
  const assignment = { lb_endpoints: [{ endpoint: { address: socketAddress('127.0.0.1', port) } }] };
  const load_assignment = { cluster_name: 'web', endpoints: [assignment] };
  const listener = listenerWith([filter], { address: socketAddress('127.0.0.1', 0) });
  return { static_resources: { listeners: [listener], clusters: [clusterNamed('web', { load_assignment })] } };
}
