// Where an operator reads of a configuration that cannot be served: in the log, by its format, and at the terminal.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { runWeir } from '../support/weir-process.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'weir-faults-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const FAULTY = 'nod: {}\nadmin:\n  address: { socket_address: { address: 127.0.0.1, port_value: -1 } }\n';
const JSON_LINES = ['--log-format', '{"level":"%l","name":"%n","text":"%j"}'];
const PLACES = ['--config-yaml:1:1: ', '--config-yaml:3:'];

interface Line {
  readonly level: string;
  readonly name: string;
  readonly text: string;
}

function readLines(text: string): Line[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

describe('the faults of a configuration', () => {
  for (const mode of ['serve', 'validate']) {
    it(`are lines of the log at standard error (${mode})`, async () => {
      const { code, stderr } = await runWeir(['--mode', mode, '--config-yaml', FAULTY, ...JSON_LINES]);
      assert.equal(code, 1);
      const critical = readLines(stderr).filter(({ level }) => level === 'critical');
      assert.equal(critical[0]!.text, "error initializing configuration '': 2 errors");
      for (const [at, place] of PLACES.entries()) assert.ok(critical[at + 1]!.text.startsWith(place), stderr);
    });

    it(`are seen at the terminal, too, where the log leaves them out (${mode})`, async () => {
      const { stderr } = await runWeir(['--mode', mode, '--config-yaml', FAULTY, '-l', 'off', ...JSON_LINES]);
      const lines = stderr.trimEnd().split('\n');
      assert.equal(lines[0], "error initializing configuration '': 2 errors");
      for (const [at, place] of PLACES.entries()) assert.ok(lines[at + 1]!.startsWith(place), stderr);
      assert.equal(lines.length, 3);
    });
  }

  it('are in the log file and at the terminal where there is a log file', async () => {
    const file = path.join(folder, 'weir.log');
    const { code, stderr } = await runWeir(['--config-yaml', FAULTY, '--log-path', file, ...JSON_LINES]);
    assert.equal(code, 1);
    const texts = readLines(readFileSync(file, 'utf8')).flatMap(({ level, text }) =>
      level === 'critical' ? text : [],
    );
    assert.deepEqual(texts, stderr.trimEnd().split('\n'));
    assert.equal(texts.length, 3);
  });

  it('that come to light behind the reading are seen at the terminal, too', async () => {
    const file = path.join(folder, 'later.log');
    const admin = 'admin: { address: { pipe: { path: /weir/no/such/folder } } }';
    const { code, stderr } = await runWeir(['--config-yaml', admin, '--log-path', file]);
    assert.equal(code, 1);
    assert.match(stderr, /^cannot serve: .*\/weir\/no\/such\/folder/);
    assert.match(readFileSync(file, 'utf8'), /\[critical\]\[main\].*cannot serve: .*\/weir\/no\/such\/folder/);
  });

  it('are told of where there is no configuration at all', async () => {
    const { code, stderr } = await runWeir(['--mode', 'validate', ...JSON_LINES]);
    assert.equal(code, 1);
    assert.match(readLines(stderr)[0]!.text, /^At least one of --config-path or --config-yaml/);
  });
});

describe('a log file', () => {
  it('is not made by a check, whose log is that of the terminal', async () => {
    const logs = mkdtempSync(path.join(folder, 'checked-'));
    const args = ['--mode', 'validate', '--log-path', path.join(logs, 'weir.log'), ...JSON_LINES];
    const { code, stderr } = await runWeir([...args, '--config-yaml', FAULTY]);
    assert.equal(code, 1);
    assert.equal(readLines(stderr).length, 3);
    assert.deepEqual(readdirSync(logs), []);
  });

  for (const mode of ['serve', 'validate']) {
    it(`needs a folder that is there (${mode})`, async () => {
      const missing = path.join(folder, 'missing');
      const file = path.join(missing, 'weir.log');
      const { code, stderr } = await runWeir(['--mode', mode, '--log-path', file, '--config-yaml', 'node: {}']);
      assert.equal(code, 1);
      assert.ok(stderr.startsWith(`failed to open log file '${file}': `), stderr);
      assert.equal(existsSync(missing), false);
    });
  }
});

describe('application_log_config', () => {
  const admin = 'admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }';

  it('makes JSON of every line from the end of the reading on', async () => {
    const json = '{ level: "%l", name: "%n", text: "%j" }';
    const configYaml = `${admin}\nflags_path: /x\napplication_log_config: { log_format: { json_format: ${json} } }`;
    const args = ['--mode', 'init_only', '--concurrency', '1', '--config-yaml', configYaml];
    const { code, stderr } = await runWeir(args);
    assert.equal(code, 0, stderr);
    const lines = stderr
      .trimEnd()
      .split('\n')
      .filter((line) => line.startsWith('{'));
    const records = lines.map((line) => JSON.parse(line) as Line);
    assert.ok(
      records.some(({ text }) => text.includes('flags_path is not supported')),
      stderr,
    );
    assert.equal(records.at(-1)!.text, 'exiting');
    assert.equal(lines.at(-1), stderr.trimEnd().split('\n').at(-1));
  });

  it('is refused beside --log-format', async () => {
    const configYaml = 'application_log_config: { log_format: { text_format: "%v" } }';
    const { code, stderr } = await runWeir(['--mode', 'validate', ...JSON_LINES, '--config-yaml', configYaml]);
    assert.equal(code, 1);
    assert.match(
      readLines(stderr)[1]!.text,
      /application_log_config\.log_format: cannot be combined with --log-format/,
    );
  });
});
