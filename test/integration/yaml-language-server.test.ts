// The schema of --print-schema as editors use it: in the YAML language server, asked for as docs/options.md says.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { LanguageServer, placeBehind } from '../support/language-server.ts';
import { runWeir } from '../support/weir-process.ts';

const SERVER = path.join(PACKAGE_ROOT, 'node_modules/yaml-language-server/bin/yaml-language-server');
const SETTINGS = { yaml: { validate: true, completion: true, hover: true, schemaStore: { enable: false } } };
const ASKS_FOR_SCHEMA = '# yaml-language-server: $schema=weir.schema.json\n';
const TCP_PROXY = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';

const MISTAKEN = `${ASKS_FOR_SCHEMA}static_resources:
  clusters:
  - name: web
    conect_timeout: 1s
    lb_policy: RANDOMLY
  listeners:
  - name: tcp
    filter_chains:
    - filters:
      - name: tcp
        typed_config:
          '@type': ${TCP_PROXY}
          cluster: web
          stat_prefiks: tcp
`;

const UNFINISHED = `${ASKS_FOR_SCHEMA}static_resources:
  clusters:
  - name: web
    c
  listeners:
  - name: tcp
    filter_chains:
    - filters:
      - name: tcp
        typed_config:
          '@type': ${TCP_PROXY}
          s
`;

describe('the YAML language server with the schema of weir', () => {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-editor-')));
  let editor: LanguageServer;

  before(async () => {
    const { stdout } = await runWeir(['--print-schema']);
    writeFileSync(path.join(folder, 'weir.schema.json'), stdout);
    editor = await LanguageServer.start([process.execPath, SERVER, '--stdio'], folder, SETTINGS);
  });
  after(async () => {
    await editor[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  it('has nothing to say against the bootstrap of the demo', async () => {
    const text = readFileSync(path.join(PACKAGE_ROOT, 'demo/bootstrap.yaml'), 'utf8');
    assert.deepEqual(await editor.faultsOf('demo.yaml', ASKS_FOR_SCHEMA + text), []);
  });

  it('marks what is wrong where it stands', async () => {
    const faults = await editor.faultsOf('mistaken.yaml', MISTAKEN);
    const lines = MISTAKEN.split('\n');
    const marked = faults.map(
      ({ message, range }) => `${lines[range.start.line]!.trim()} <- ${message.split('. ')[0]}`,
    );
    assert.deepEqual(marked.sort(), [
      'conect_timeout: 1s <- Property conect_timeout is not allowed.',
      'lb_policy: RANDOMLY <- Value is not accepted',
      'stat_prefiks: tcp <- Property stat_prefiks is not allowed.',
      'typed_config: <- Missing property "stat_prefix".',
    ]);
  });

  it('completes fields, and those of an extension by its type', async () => {
    editor.open('unfinished.yaml', UNFINISHED);
    const ofCluster = await editor.completions('unfinished.yaml', placeBehind(UNFINISHED, '\n    c'));
    const connectTimeout = ofCluster.find(({ label }) => label === 'connect_timeout');
    assert.match(String(connectTimeout?.documentation), /^For new connections/);
    const ofProxy = await editor.completions('unfinished.yaml', placeBehind(UNFINISHED, '\n          s'));
    assert.ok(
      ofProxy.some(({ label }) => label === 'stat_prefix'),
      JSON.stringify(ofProxy),
    );
  });

  it('explains what a word means', async () => {
    const place = placeBehind(MISTAKEN, '    lb_po');
    assert.match(await editor.explanation('mistaken.yaml', place), /weir takes/);
  });
});
