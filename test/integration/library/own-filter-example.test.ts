// The filters that docs/filters.md shows, below the program and below the library, with the configuration of that page.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import type { ProxyOptions } from '../../../src/library/index.ts';
import { clusterAt, createProxy, NamedUpstream } from '../../support/embedded.ts';
import { untilEqual } from '../../support/eventually.ts';
import { startWeir } from '../../support/weir-process.ts';

const PAGE = readFileSync(path.join(PACKAGE_ROOT, 'docs/filters.md'), 'utf8');
const [MODULE, INLINE] = [...PAGE.matchAll(/```js\n([\s\S]*?)```/g)].map(([, text]) => text!);
const [CHAIN] = [...PAGE.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text!);

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-filter-')));
let upstream: NamedUpstream;
before(async () => {
  upstream = await NamedUpstream.start('served');
  writeFileSync(path.join(folder, 'api-key.mjs'), MODULE!);
});
after(async () => {
  rmSync(folder, { recursive: true });
  await upstream[Symbol.asyncDispose]();
});

function bootstrap(chain: string): string {
  const lines = chain.trimEnd().replaceAll('./api-key.mjs', path.join(folder, 'api-key.mjs')).split('\n');
  return `
static_resources:
  clusters: [${JSON.stringify(clusterAt('web', upstream.port))}]
  listeners:
    - name: main
      address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: main
                route_config: { virtual_hosts: [{ name: all, domains: ['*'], routes: [{ match: { prefix: / }, route: { cluster: web } }] }] }
${lines.map((line) => `                ${line}`).join('\n')}
`;
}

async function ask(url: string, headers: Record<string, string> = {}): Promise<readonly unknown[]> {
  const response = await fetch(url, { headers });
  return [response.status, await response.text(), response.headers.get('x-content-type-options')];
}

describe('the filter of the page', () => {
  it('runs in the program', async () => {
    const configYaml = `admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }\n${bootstrap(CHAIN!)}`;
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    const url = `http://127.0.0.1:${(await weir.listeners()).get('main')!.port}/`;
    assert.deepEqual(await ask(url), [401, 'who are you?\n', 'nosniff']);
    assert.deepEqual(await ask(url, { 'x-api-key': 'rose' }), [200, 'served', 'nosniff']);
    const counted = async (): Promise<string> =>
      (await fetch(`${weir.adminUrl}/stats?filter=http.main.api-key.refused`)).text();
    await untilEqual('http.main.api-key.refused: 1\n', counted, 'a count');
  });

  it('has what is wrong with its config told with its place', async () => {
    const wrong = bootstrap(CHAIN!).replace('[tulip, rose]', 'tulip');
    const file = path.join(folder, 'wrong.yaml');
    writeFileSync(file, wrong);
    await assert.rejects(
      createProxy(file),
      (error: { readonly faults?: readonly { file: string; message: string }[] }) => {
        const [fault] = error.faults ?? [];
        assert.deepEqual([fault?.file, fault?.message], [file, 'keys: expected a list']);
        return true;
      },
    );
  });

  it('is given to createProxy as the page has it', async () => {
    const options = new Function(
      `return ${/createProxy\(bootstrap, (\{[\s\S]*\})\);/.exec(INLINE!)![1]!}`,
    )() as ProxyOptions;
    const chain = CHAIN!.replace(
      / {2}- name: api-key[\s\S]*?(?= {2}- name: envoy)/,
      `  - name: x-served-by\n    typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.module.v3.Module }\n`,
    );
    const file = path.join(folder, 'given.yaml');
    writeFileSync(file, bootstrap(chain));
    await using proxy = await createProxy(file, options);
    const response = await fetch(proxy.listeners.get('main')!.url);
    assert.deepEqual([response.headers.get('x-served-by'), await response.text()], ['weir', 'served']);
  });
});
