import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { formatFault } from '../../../../src/config/fault.ts';
import { FaultList } from '../../../../src/config/fault-list.ts';
import { ConfigDocument } from '../../../../src/config/source/config-document.ts';
import { entryPath, fieldPath, formatPath, itemPath, parsePath } from '../../../../src/config/source/field-path.ts';
import { openConfigYaml, openFile, parseBytes } from '../../../../src/config/source/source.ts';
import { SourceText } from '../../../../src/config/source/source-text.ts';
import { asNobody } from '../../../support/as-nobody.ts';
import { runProgram } from '../../../support/child-process.ts';
import { cpuTimeMs } from '../../../support/cpu-time.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'weir-source-'));
after(() => rmSync(folder, { recursive: true }));

/** The fault of opening a file with this content, without the folder's name. */
function faultOf(name: string, content?: string | Uint8Array): string {
  const file = path.join(folder, name);
  if (content !== undefined) writeFileSync(file, content);
  const opened = openFile(file);
  return 'fault' in opened ? formatFault(opened.fault).replace(`${folder}/`, '') : 'no fault';
}

describe('opening a source', () => {
  test('every unreadable file ends in one fault that names the reason', () => {
    mkdirSync(path.join(folder, 'folder.yaml'));
    const noise = Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 167 + 13) % 256));
    const cases: readonly [string, string, (string | Uint8Array)?][] = [
      ['absent.yaml: no such file', 'absent.yaml'],
      ['folder.yaml: is a directory, not a file', 'folder.yaml'],
      ['envoy.yaml/x.yaml: no such file', 'envoy.yaml/x.yaml'],
      ['empty.yaml: file is empty', 'empty.yaml', ''],
      ['empty.json: file is empty', 'empty.json', ''],
      ['empty.pb: file is empty', 'empty.pb', ''],
      ['empty.pb_text: file is empty', 'empty.pb_text', ''],
      ['comment.yaml: holds no configuration', 'comment.yaml', '# nothing\n'],
      ['comment.pb_text: holds no configuration', 'comment.pb_text', '# nothing\n'],
      ['space.json: holds no configuration', 'space.json', ' \n'],
      [
        'config.toml: unknown file extension; expected .json, .yaml, .yml, .pb, .pb_text, .pbtxt, .textproto',
        'config.toml',
        'a',
      ],
      ['config: unknown file extension; expected .json, .yaml, .yml, .pb, .pb_text, .pbtxt, .textproto', 'config', 'a'],
      ['noise.yaml:1: not valid UTF-8 text', 'noise.yaml', noise],
      ['noise.json:1: not valid UTF-8 text', 'noise.json', noise],
      ['latin1.yaml:2: not valid UTF-8 text', 'latin1.yaml', Buffer.from('a: 1\nb: caf\xe9\n', 'latin1')],
      ['utf16.yaml:1: not valid UTF-8 text', 'utf16.yaml', Buffer.from('\ufeffa: 1', 'utf16le')],
      ['nul.yaml:2: contains a NUL character', 'nul.yaml', 'a: 1\nb: \0'],
      ['list.yaml:1:1: top level must be a map of fields, got a list', 'list.yaml', '- a: 1'],
      ['text.yaml:1:1: top level must be a map of fields, got a single value', 'text.yaml', 'hello'],
      ['cut.json:2:8: not valid JSON: expected "," or "}", got the end of the text', 'cut.json', '{\n "a": 1'],
      ['dup.yaml:3:1: duplicate key "a", first given in line 1', 'dup.yaml', 'a: 1\nb: 2\na: 3'],
    ];
    writeFileSync(path.join(folder, 'envoy.yaml'), 'node: {}');
    for (const [expected, name, content] of cases) assert.equal(faultOf(name, content), expected);
  });

  test('a file that may not be read is refused', () => {
    const file = path.join(folder, 'secret.yaml');
    writeFileSync(file, 'node: {}');
    chmodSync(folder, 0o755);
    chmodSync(file, 0);
    assert.equal(
      asNobody(() => faultOf('secret.yaml')),
      'secret.yaml: permission denied',
    );
  });

  test('a pipe is refused instead of waited for', async () => {
    await runProgram('mkfifo', [path.join(folder, 'pipe.yaml')]);
    assert.equal(faultOf('pipe.yaml'), 'pipe.yaml: is not a regular file');
  });

  test('a file of 50 MB is refused without reading it', () => {
    const file = path.join(folder, 'large.yaml');
    writeFileSync(file, '');
    truncateSync(file, 50_000_000);
    const spent = cpuTimeMs(() => {
      assert.equal(faultOf('large.yaml'), 'large.yaml: has 50000000 bytes, more than the limit 33554432');
    });
    assert.ok(spent < 10, `${spent} ms`);
  });

  test('a byte order mark is dropped, and line 1 counts from after it', () => {
    const opened = parseBytes('bom.yaml', 'yaml', Buffer.from('\ufeffa: [1'));
    assert.ok('fault' in opened);
    assert.equal(opened.fault.column, 6);
    assert.ok('source' in parseBytes('bom.json', 'json', Buffer.from('\ufeff{"a": 1}')));
  });

  test('--config-yaml takes YAML and JSON, tabs included', () => {
    for (const text of ['a: {b: 1}', '{"a":\n\t{"b":\t1}}', '{a: {b: 1}}']) {
      assert.ok('source' in openConfigYaml(text), text);
    }
    const opened = openConfigYaml('a: [');
    assert.ok('fault' in opened);
    assert.match(formatFault(opened.fault), /^--config-yaml:1:5: not valid YAML/);
  });
});

describe('positions', () => {
  function documentOf(text: string, name = 'a.yaml', form: 'yaml' | 'text' = 'yaml') {
    const opened = parseBytes(name, form, Buffer.from(text));
    assert.ok('source' in opened);
    return opened.source.layer;
  }

  const at = (document: ConfigDocument, fieldPathText: string) => {
    const { file, line, column } = document.positionOf(fieldPathText);
    return `${file}:${line}:${column}`;
  };

  test('offsets become lines and columns, whatever ends a line', () => {
    const source = new SourceText('x', 'ab\r\ncd\n\nef');
    const places = [0, 1, 4, 6, 7, 8, 10, 999].map((offset) => Object.values(source.lineAndColumn(offset)).join(':'));
    assert.deepEqual(places, ['1:1', '1:2', '2:1', '2:3', '3:1', '4:1', '4:3', '4:3']);
  });

  test('paths and their segments are two forms of one thing', () => {
    let text = fieldPath('', 'static_resources');
    text = itemPath(fieldPath(text, 'clusters'), 2);
    text = entryPath(fieldPath(text, 'typed_extension_protocol_options'), 'a.b"]c');
    text = fieldPath(text, 'x');
    assert.equal(text, 'static_resources.clusters[2].typed_extension_protocol_options["a.b\\"]c"].x');
    assert.equal(formatPath(parsePath(text)), text);
  });

  test('a path is found under every spelling; what is missing is shown at what surrounds it', () => {
    const document = new ConfigDocument(
      documentOf(
        [
          'staticResources:',
          '  clusters:',
          '  - name: a',
          '    lb_policy: X',
          '    metadata: { filter_metadata: { "envoy.lb": { k: v } } }',
          '  - name: b',
          '    transport_socket:',
          '      name: tls',
          '      config: { sni: s }',
        ].join('\n'),
      ),
    );
    const cases: Readonly<Record<string, string>> = {
      'static_resources.clusters[0].lb_policy': 'a.yaml:4:16',
      'static_resources.clusters[1]': 'a.yaml:6:5',
      'static_resources.clusters[1].connect_timeout': 'a.yaml:6:5',
      'static_resources.clusters[0].metadata.filter_metadata["envoy.lb"].k': 'a.yaml:5:53',
      'static_resources.clusters[1].transport_socket.typed_config.sni': 'a.yaml:9:22',
      'static_resources.clusters[1].transport_socket.typed_config.common': 'a.yaml:9:7',
      '': 'a.yaml:1:1',
      admin: 'a.yaml:1:1',
    };
    for (const [place, expected] of Object.entries(cases)) assert.equal(at(document, place), expected, place);
    const fault = document.fault('static_resources.clusters[1].transport_socket.typed_config.sni', 'is wrong');
    assert.equal(formatFault(fault), 'a.yaml:9:22: static_resources.clusters[1].transport_socket.config.sni: is wrong');
  });

  test('text proto positions follow repeated keys, map entries and expanded Anys', () => {
    const text = 'list { a: 1 }\nlist { a: 2 }\nmap { key: "k" value { b: 3 } }\nany {\n [h/t] { c: 4 }\n}';
    const document = new ConfigDocument(documentOf(text, 'a.pb_text', 'text'));
    assert.equal(at(document, 'list[1].a'), 'a.pb_text:2:11');
    assert.equal(at(document, 'map["k"].b'), 'a.pb_text:3:27');
    assert.equal(at(document, 'any.c'), 'a.pb_text:5:13');
  });

  test('of two merged sources, the one that gave the value is named, appended items included', () => {
    const lower = documentOf('name: a\nlist:\n- x: 1\n- x: 2\nkept: 1');
    const upper = documentOf('list: [{ x: 3 }]\nname: b', '--config-yaml');
    const document = new ConfigDocument(lower, upper, new Map([['list', 2]]));
    assert.equal(at(document, 'name'), '--config-yaml:2:7');
    assert.equal(at(document, 'kept'), 'a.yaml:5:7');
    assert.equal(at(document, 'list[1].x'), 'a.yaml:4:6');
    assert.equal(at(document, 'list[2].x'), '--config-yaml:1:13');
    assert.equal(document.fault('list[2].x', 'is wrong').path, 'list[2].x');
  });

  test('faults print what they know and no more', () => {
    const base = { path: 'a.b', message: 'is wrong', severity: 'error' } as const;
    assert.equal(formatFault({ ...base, file: 'f', line: 1, column: 2 }), 'f:1:2: a.b: is wrong');
    assert.equal(formatFault({ ...base, file: 'f', line: 1, column: 0 }), 'f:1: a.b: is wrong');
    assert.equal(formatFault({ ...base, file: 'f', line: 0, column: 0 }), 'f: a.b: is wrong');
    assert.equal(formatFault({ ...base, file: '', line: 0, column: 0 }), 'a.b: is wrong');
    assert.equal(formatFault({ ...base, path: '', file: 'f', line: 3, column: 1 }), 'f:3:1: is wrong');
  });

  test('a list of faults is bounded and says how many it left out', () => {
    const list = new FaultList();
    const fault = { path: 'a', message: 'm', file: '', line: 0, column: 0, severity: 'error' } as const;
    list.addAll(Array(1500).fill(fault));
    assert.equal(list.all.length, 1001);
    assert.equal(list.all.at(-1)!.message, '500 further faults are not shown');
    assert.ok(list.hasErrors);
  });
});
