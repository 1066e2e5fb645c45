// What an operator sees who starts weir with a configuration that cannot be served: each ends with code 1 and a
// message that names the place, and never with a stack trace.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { formatFault } from '../../src/config/index.ts';
import { asNobody } from '../support/as-nobody.ts';
import { loadFile } from '../support/bootstrap.ts';
import { runWeir } from '../support/weir-process.ts';

const FILE_LOG = 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog';
const CLUSTER = `{ name: web, load_assignment: { cluster_name: web, endpoints: [] } }`;

interface BadConfig {
  readonly name: string;
  readonly file?: string;
  readonly content: string | Uint8Array;
  /** What standard error must say. */
  readonly says: RegExp;
}

function routeTo(cluster: string, filter = 'envoy.filters.network.http_connection_manager'): string {
  return `
static_resources:
  listeners:
  - name: main
    address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - filters:
      - name: ${filter}
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: main
          route_config:
            virtual_hosts:
            - { name: all, domains: ["*"], routes: [{ match: { prefix: / }, route: { cluster: ${cluster} } }] }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
  clusters:
  - name: web
    load_assignment:
      cluster_name: web
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 80 } } } }] }]
`;
}

const ALIAS_BOMB = [
  'a: &a [x,x,x,x,x,x,x,x,x,x]',
  ...'bcdefghij'.split('').map((name, level) => {
    const below = 'abcdefghi'[level]!;
    return `${name}: &${name} [${Array.from({ length: 10 }, () => `*${below}`).join(',')}]`;
  }),
].join('\n');

const BAD_CONFIGS: readonly BadConfig[] = [
  { name: 'an empty file', content: '', says: /bad\.yaml.*empty/ },
  {
    name: 'binary noise',
    content: Uint8Array.from({ length: 4096 }, (_, at) => (at * 197 + 13) & 0xff),
    says: /bad\.yaml/,
  },
  { name: 'invalid UTF-8', content: Uint8Array.of(0x61, 0x3a, 0x20, 0xff, 0xfe), says: /bad\.yaml.*UTF-8/ },
  { name: 'an alias bomb', content: ALIAS_BOMB, says: /bad\.yaml:\d+:\d+: .*alias/ },
  { name: 'a duplicate key', content: 'node: { id: a }\nnode: { id: b }\n', says: /bad\.yaml:2:1: .*duplicate/i },
  {
    name: 'deep nesting',
    content: `node: ${'['.repeat(5000)}${']'.repeat(5000)}`,
    says: /bad\.yaml:1:\d+: .*(deep|depth|nest)/,
  },
  {
    name: 'a wrong type',
    content: 'static_resources: { clusters: 7 }',
    says: /bad\.yaml:1:31: static_resources\.clusters: /,
  },
  {
    name: 'a port out of range',
    content: 'admin: { address: { socket_address: { address: 127.0.0.1, port_value: 70000 } } }',
    says: /bad\.yaml:1:\d+: admin\.address\.socket_address\.port_value: 70000 exceeds the limit 65535/,
  },
  {
    name: 'two clusters of one name',
    content: `static_resources:\n  clusters:\n  - ${CLUSTER}\n  - ${CLUSTER}\n`,
    says: /bad\.yaml:4:\d+: static_resources\.clusters\[1\]\.name: .*web/,
  },
  {
    name: 'a route to a cluster that does not exist',
    content: routeTo('wbe'),
    says: /bad\.yaml:\d+:\d+: static_resources\.listeners\[0\].*route\.cluster: .*wbe.*did you mean .*web/,
  },
  {
    name: 'an unknown filter',
    content: routeTo('web')
      .replace(
        /typed_config:\n.*v3\.HttpConnectionManager"?/,
        'typed_config: { "@type": type.googleapis.com/acme.Filter }\n        junk:',
      )
      .replace(/name: envoy.filters.network.http_connection_manager/, 'name: acme.filter'),
    says: /acme/,
  },
  {
    name: 'a misspelt field',
    content: 'static_resources: { clustres: [] }',
    says: /bad\.yaml:1:\d+: .*clustres.*did you mean .*clusters/,
  },
  { name: 'truncated JSON', file: 'bad.json', content: '{"static_resources": {', says: /bad\.json:1:\d+: / },
  { name: 'a damaged binary proto', file: 'bad.pb', content: Uint8Array.of(0x12, 0x7f, 0x01), says: /bad\.pb/ },
  {
    name: 'a damaged text proto',
    file: 'bad.pb_text',
    content: 'static_resources { clusters {',
    says: /bad\.pb_text:1:\d+: /,
  },
  {
    name: 'a format that its name does not tell',
    file: 'bad.toml',
    content: 'x = 1',
    says: /bad\.toml.*(extension|\.yaml)/,
  },
];

function criticalTexts(log: string): string[] {
  return log.split('\n').flatMap((line) => /\[critical\]\[main\] \[[^\]]*\] (.*)/.exec(line)?.[1] ?? []);
}

describe('weir refuses with code 1 and a clear message', () => {
  let folder = '';

  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'weir-bad-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  async function refuses(file: string, says: RegExp): Promise<void> {
    const { code, stdout, stderr } = await runWeir(['--mode', 'validate', '-c', file]);
    assert.equal(code, 1, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, says);
    assert.doesNotMatch(stderr, /\n\s+at |node:internal/, 'no stack trace');
    assert.match(stderr, /\[critical\]\[main\].*error initializing configuration '.*': \d+ errors?\n/);
    const served = await runWeir(['--concurrency', '1', '-c', file]);
    assert.equal(served.code, 1);
    assert.deepEqual(criticalTexts(served.stderr), criticalTexts(stderr), 'serving says the same');
  }

  for (const bad of BAD_CONFIGS) {
    it(bad.name, async () => {
      const file = path.join(folder, bad.file ?? 'bad.yaml');
      writeFileSync(file, bad.content);
      await refuses(file, bad.says);
    });
  }

  it('a file that is not there', () => refuses(path.join(folder, 'none.yaml'), /none\.yaml.*(no such file|ENOENT)/));

  it('a directory', async () => {
    mkdirSync(path.join(folder, 'folder.yaml'));
    await refuses(path.join(folder, 'folder.yaml'), /folder\.yaml.*directory/);
  });

  it('a file of 50 MB', async () => {
    const file = path.join(folder, 'large.yaml');
    writeFileSync(file, '');
    truncateSync(file, 50 * 1024 * 1024);
    await refuses(file, /large\.yaml.*(MiB|bytes|large)/);
  });

  it('a file without permission to read', () => {
    const file = path.join(folder, 'secret.yaml');
    writeFileSync(file, 'node: {}');
    assert.notEqual(loadFile(file).bootstrap, undefined);
    chmodSync(file, 0);
    const { bootstrap, faults } = asNobody(() => loadFile(file));
    assert.equal(bootstrap, undefined);
    assert.match(faults.map(formatFault).join(), /secret\.yaml.*permission/);
  });

  it('access logs that cannot be written, in both modes, and leaves no trace', async () => {
    const logs = path.join(folder, 'logs');
    mkdirSync(logs);
    const file = path.join(folder, 'logs.yaml');
    const accessLog = (name: string): string =>
      `{ name: log, typed_config: { "@type": ${FILE_LOG}, path: ${path.join(logs, name)} } }`;
    const config = routeTo('web').replace(
      '    filter_chains:',
      `    access_log:\n    - ${accessLog('good.log')}\n    - ${accessLog('missing/a.log')}\n    filter_chains:`,
    );
    const admin = `admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } }, access_log_path: ${logs} }`;
    writeFileSync(file, config + admin);
    const place = file.replaceAll('.', '\\.');
    for (const mode of ['validate', 'serve']) {
      const { code, stderr } = await runWeir(['--mode', mode, '-c', file]);
      assert.equal(code, 1);
      const log = 'static_resources\\.listeners\\[0\\]\\.access_log\\[1\\]\\.typed_config\\.path';
      assert.match(
        stderr,
        new RegExp(`${place}:8:\\d+: ${log}: ".*/a\\.log" cannot be written: its folder does not exist\\n`),
      );
      assert.match(
        stderr,
        new RegExp(`${place}:\\d+:\\d+: admin\\.access_log_path: ".*" cannot be written: it is a folder\\n`),
      );
      assert.match(stderr, /error initializing configuration '.*': 2 errors\n/);
      assert.deepEqual(readdirSync(logs), []);
    }
  });

  it('a key that would make lines of its own, on one line', async () => {
    const file = path.join(folder, 'keys.yaml');
    writeFileSync(file, '"wrong\\r\\n[forged] line\\u001b[2J\\u0085\\u2028": 1\n');
    const strict = await runWeir(['--mode', 'validate', '-c', file]);
    const lenient = await runWeir(['--mode', 'validate', '-c', file, '--allow-unknown-static-fields']);
    assert.deepEqual([strict.code, lenient.code], [1, 0]);
    for (const { stderr } of [strict, lenient]) {
      assert.match(stderr, /keys\.yaml:1:1: .*wrong\\r\\n\[forged\] line\\x1B\[2J\\x85\\u2028/);
      for (const line of stderr.trimEnd().split('\n')) assert.match(line, /^\[20\d\d-/);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
      assert.doesNotMatch(stderr, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028]/);
    }
  });

  it('every fault at once, in the order of their places', async () => {
    const file = path.join(folder, 'many.yaml');
    writeFileSync(
      file,
      'nod: {}\nadmin:\n  address: { socket_address: { address: 127.0.0.1, port_value: -1 } }\nstats_flush_interval: 1h\n',
    );
    const { stderr } = await runWeir(['-c', file]);
    const places = stderr.split('\n').flatMap((line) => /^.*many\.yaml:(\d+):/.exec(line)?.[1] ?? []);
    assert.deepEqual(places, ['1', '3', '4'], stderr);
  });

  it('a start without any configuration in mode validate', async () => {
    const { code, stderr } = await runWeir(['--mode', 'validate']);
    assert.equal(code, 1);
    assert.match(stderr, /At least one of --config-path or --config-yaml should be given, and not be empty\n$/);
  });

  it('a listener whose address is taken', async () => {
    await using blocker = createServer().listen(0, '127.0.0.1');
    await once(blocker, 'listening');
    const { port } = blocker.address() as { port: number };
    const { code, stderr } = await runWeir([
      '--concurrency',
      '1',
      '--config-yaml',
      routeTo('web').replace('port_value: 0 ', `port_value: ${port} `),
    ]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`error adding listener '127.0.0.1:${port}' \\(main\\): .*in use`));
    assert.doesNotMatch(stderr, /\n\s+at /);
  });
});

describe('--mode validate', () => {
  it('says OK and opens nothing', async () => {
    const { code, stdout } = await runWeir(['--mode', 'validate', '--config-yaml', routeTo('web')]);
    assert.deepEqual({ code, stdout }, { code: 0, stdout: "configuration '' OK\n" });
  });
});
