// What an editor knows of `weir-proxy`: the types of the package as it is built, used by projects of both kinds of modules.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import { runProgram } from '../../support/child-process.ts';
import { LanguageServer, placeBehind } from '../../support/language-server.ts';

/** A tag of completions, which editors strike through. */
const DEPRECATED = 1;
const TSC = path.join(PACKAGE_ROOT, 'node_modules/typescript/bin/tsc');
const project = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-types-')));
after(() => rmSync(project, { recursive: true }));

before(() => {
  mkdirSync(path.join(project, 'node_modules'));
  symlinkSync(PACKAGE_ROOT, path.join(project, 'node_modules/weir-proxy'));
  writeFileSync(path.join(project, 'package.json'), '{ "type": "module" }');
});

const MANAGER = 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';

const GOOD = `
import { createProxy, ConfigError, WeirError, type Bootstrap, type Fault, type Proxy, type ProxyOptions } from 'weir-proxy';
const bootstrap: Bootstrap = {
  admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
  staticResources: {
    clusters: [
      {
        name: 'web',
        type: 'STRICT_DNS',
        connectTimeout: '0.25s',
        lb_policy: 'RING_HASH',
        ring_hash_lb_config: { minimum_ring_size: 64n },
        common_lb_config: { healthy_panic_threshold: { value: 50 } },
        typed_extension_protocol_options: {
          'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
            '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
            explicit_http_config: { http_protocol_options: {} },
          },
        },
      },
    ],
    listeners: [
      {
        name: 'http',
        filter_chains: [
          {
            filters: [
              {
                name: 'envoy.filters.network.http_connection_manager',
                typed_config: { '@type': '${MANAGER}', stat_prefix: 'in', stream_idle_timeout: '300s' },
              },
            ],
          },
        ],
      },
    ],
  },
  node: { metadata: { any: ['thing', 1, { of: true }] } },
};
const options: ProxyOptions = { concurrency: 2, logLevel: 'debug', log: (line, { level, component }) => [line, level, component] };
export async function use(): Promise<Fault | undefined> {
  const proxy: Proxy = await createProxy(bootstrap, options);
  await using other = await createProxy('bootstrap.yaml');
  const port: number = proxy.listeners.get('http')!.port;
  const url: string | undefined = proxy.admin?.url;
  const count: number | undefined = (await proxy.stats.counters())['cluster.web.upstream_rq_total'];
  const quantiles: Float64Array | undefined = (await other.stats.histogram('x'))?.interval.quantiles([0.5]);
  await proxy.applyBootstrap({});
  const error: unknown = [port, url, count, quantiles];
  if (error instanceof ConfigError) return error.faults[0];
  if (error instanceof WeirError) throw new Error(error.code);
  return undefined;
}
`;

const WRONG: readonly string[] = [
  `{ static_resource: {} }`,
  `{ static_resources: { clusters: [{ lb_policy: 'RINGS' }] } }`,
  `{ static_resources: { clusters: [{ connect_timeout: 5 }] } }`,
  `{ static_resources: { clusters: [{ hosts: [] }] } }`,
  `{ static_resources: { listeners: [{ filter_chains: [{ filters: [{ typed_config: { '@type': 'type.googleapis.com/nothing' } }] }] }] } }`,
  `{ static_resources: { listeners: [{ filter_chains: [{ filters: [{ typed_config: { '@type': '${MANAGER}', stat_prefiks: 'a' } }] }] }] } }`,
];

const FILTER = `
import type { HttpFilterDefinition, HttpFilterFactory, ProxyOptions } from 'weir-proxy';
const factory: HttpFilterFactory = ({ word }, context) => {
  const seen = context.counter('seen');
  return (stream) => ({
    async decodeHeaders(headers) {
      await stream.call({ cluster: 'a' });
      headers.set('x-word', String(word));
      seen.add();
    },
    encodeHeaders(headers) {
      headers.status = 201;
    },
    encodeData(data) {
      data.bytes = new Uint8Array(data.isEnd ? 1 : 0);
      return 'continue';
    },
  });
};
const definition: HttpFilterDefinition = { create: factory, responseBody: 'edits' };
export const options: ProxyOptions = { httpFilters: { a: factory, b: definition, c: './c.js', d: new URL('file:///d.js') } };
// @ts-expect-error
export const wrong: HttpFilterDefinition = { create: () => () => ({ decodeHeaders: () => 'halt' }) };
`;

async function compile(files: Readonly<Record<string, string>>) {
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(project, name), text);
  const compilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable', 'dom'],
    types: [],
  };
  const config = JSON.stringify({ compilerOptions, files: Object.keys(files) });
  writeFileSync(path.join(project, 'tsconfig.json'), config);
  return await runProgram(process.execPath, [TSC, '-p', 'tsconfig.json'], { cwd: project });
}

describe('the types of weir-proxy', () => {
  it('let a whole bootstrap through, from either kind of module', async () => {
    const { code, stdout } = await compile({ 'esm.ts': GOOD, 'common.cts': GOOD });
    assert.equal(stdout, '');
    assert.equal(code, 0);
  });

  it('let filters through, whose methods may be async and return nothing', async () => {
    const { code, stdout } = await compile({ 'filter.ts': FILTER });
    assert.equal(stdout, '');
    assert.equal(code, 0);
  });

  it('find names, values and settings that there are not', async () => {
    const lines = WRONG.flatMap((text) => ['// @ts-expect-error', `export default ${text} satisfies Bootstrap;`]);
    const files = Object.fromEntries(
      WRONG.map((_, at) => {
        const text = lines.slice(2 * at, 2 * at + 2).join('\n');
        return [`wrong${at}.ts`, `import type { Bootstrap } from 'weir-proxy';\n${text}\n`];
      }),
    );
    const { code, stdout } = await compile(files);
    assert.equal(stdout, '');
    assert.equal(code, 0);
  });

  it('are what an editor completes from, down into the settings of an extension', async () => {
    const text = `
import { createProxy } from 'weir-proxy';
await createProxy({
  staticResources: {
    clusters: [{ name: 'web', /* cluster */ lb_policy: '' }],
    listeners: [{ filter_chains: [{ filters: [{ typed_config: { '@type': '${MANAGER}', /* settings */ } }] }] }],
  },
});
`;
    await using editor = await LanguageServer.start([process.execPath, TSC, '--lsp', '--stdio'], project);
    editor.open('completed.ts', text);
    const offered = async (mark: string): Promise<readonly string[]> => {
      const found = await editor.completions('completed.ts', placeBehind(text, mark));
      return found.map(({ label }) => label.replace(/\?$/, ''));
    };
    const isSubset = (some: readonly string[], of: readonly string[]): void => {
      assert.deepEqual(
        some.filter((name) => !of.includes(name)),
        [],
        `of ${of.join(', ')}`,
      );
    };
    const ofCluster = await offered('/* cluster */ ');
    isSubset(['connect_timeout', 'connectTimeout', 'ring_hash_lb_config', 'circuit_breakers'], ofCluster);
    isSubset(['RING_HASH', 'MAGLEV'], await offered("lb_policy: '"));
    isSubset(['route_config', 'http_filters', 'stream_idle_timeout'], await offered('/* settings */ '));
  });

  it('tell what each field is, what holds without it, and what this build takes of it', async () => {
    const text = `
import type { Bootstrap } from 'weir-proxy';
export const bootstrap: Bootstrap = { static_resources: { clusters: [{ /* cluster */ }] } };
`;
    await using editor = await LanguageServer.start([process.execPath, TSC, '--lsp', '--stdio'], project);
    editor.open('explained.ts', text);
    const offered = await editor.completions('explained.ts', placeBehind(text, '/* cluster */ '));
    const said = async (name: string): Promise<string> => {
      const completion = offered.find(({ label }) => label === `${name}?`);
      assert.ok(completion, name);
      return await editor.documentationOf(completion);
    };
    for (const name of ['connect_timeout', 'connectTimeout'])
      assert.match(await said(name), /connections.* Default 5 s/);
    assert.match(await said('type'), /^How the members are found\.\s+weir takes STATIC, STRICT_DNS,/);
    assert.match(await said('transport_socket_matcher'), /not supported by this build: the configuration is refused/);
    assert.match(await said('transport_socket_matches'), /Transport sockets by endpoint metadata/);
    assert.equal(offered.find(({ label }) => label === 'transport_socket_matcher?')!.tags?.includes(DEPRECATED), true);
    assert.equal(offered.find(({ label }) => label === 'connect_timeout?')!.tags, undefined);
  });
});
