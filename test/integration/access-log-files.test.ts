// Access logs of the real program: two workers on one file, standard output, rotation by SIGUSR1, the end.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { untilEqual } from '../support/eventually.ts';
import { getAll } from '../support/get-all.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const LOGGERS = 'type.googleapis.com/envoy.extensions.access_loggers';
const PADDING = 'x'.repeat(300);

function configWith(file: string): string {
  const format = { log_format: { json_format: { path: '%REQ(:PATH)%', code: '%RESPONSE_CODE%', pad: PADDING } } };
  const text = {
    log_format: { text_format_source: { inline_string: 'out %REQ(:PATH)% %ENVIRONMENT(WEIR_TEST_POD)%\n' } },
  };
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'web',
    access_log: [
      { name: 'file', typed_config: { '@type': `${LOGGERS}.file.v3.FileAccessLog`, path: file, ...format } },
      {
        name: 'stdout',
        typed_config: { '@type': `${LOGGERS}.stream.v3.StdoutAccessLog`, ...text },
        filter: { header_filter: { header: { name: ':path', string_match: { prefix: '/out' } } } },
      },
    ],
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] },
      ],
    },
    http_filters: [
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  const any = { socket_address: { address: '127.0.0.1', port_value: 0 } };
  return JSON.stringify({
    admin: { address: any },
    static_resources: {
      listeners: [
        {
          name: 'web',
          address: any,
          filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }],
        },
      ],
    },
  });
}

interface Running {
  readonly weir: WeirProcess;
  readonly file: string;
  /** Requests over so many connections, each in its turn. */
  ask(paths: readonly string[], connections?: number): Promise<void>;
}

async function start(t: TestContext, ...args: string[]): Promise<Running> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-access-log-'));
  const file = path.join(folder, 'access.log');
  const weir = await startWeir({ configYaml: configWith(file), args, env: { WEIR_TEST_POD: 'pod-7' } });
  t.after(() => weir.stop());
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { port } = (await weir.listeners()).get('web')!;
  const ask = (paths: readonly string[], connections = 1): Promise<void> => getAll(port, paths, connections);
  return { weir, file, ask };
}

/** Paths of all entries, each of which must be whole. */
function pathsIn(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  assert.equal(lines.pop(), '');
  return lines.map((line) => {
    const { path: target, code, pad } = JSON.parse(line);
    assert.deepEqual({ code, pad }, { code: 200, pad: PADDING });
    return target as string;
  });
}

async function postReopen(weir: WeirProcess): Promise<void> {
  const response = await fetch(`${weir.adminUrl}/reopen_logs`, { method: 'POST' });
  assert.deepEqual([response.status, await response.text()], [200, 'OK\n']);
}

const ROTATIONS: readonly (readonly [string, (weir: WeirProcess) => unknown])[] = [
  ['SIGUSR1', ({ pid }) => process.kill(pid, 'SIGUSR1')],
  ['/reopen_logs', postReopen],
];

for (const [by, reopen] of ROTATIONS) {
  test(`two workers write whole entries into one file, before and behind a rotation by ${by}, and lose none`, async (t) => {
    const { weir, file, ask } = await start(t, '--concurrency', '2');
    const paths = Array.from({ length: 1500 }, (_, number) => `/${number}`);
    await ask(paths.slice(0, 1000), 16);
    renameSync(file, `${file}.1`);
    await reopen(weir);
    await ask(paths.slice(1000, 1250), 16);
    await untilEqual(true, () => existsSync(file), 'the new file');
    await ask(paths.slice(1250), 16);
    await weir.untilStat('filesystem.write_buffered', 1500);
    const { code } = await weir.stop();
    assert.equal(code, 0);
    const [before, behind] = [pathsIn(`${file}.1`), pathsIn(file)];
    assert.ok(behind.length > 0, 'the new file has been written');
    assert.deepEqual([...before, ...behind].sort(), [...paths].sort());
  });
}

test('the log of the process is opened anew together with the access logs', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-log-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const log = path.join(folder, 'weir.log');
  const { weir } = await start(t, '--log-path', log);
  renameSync(log, `${log}.1`);
  await postReopen(weir);
  assert.ok(existsSync(log), 'it is there again at once');
  await weir.stop();
  assert.match(readFileSync(log, 'utf8'), /exiting/);
});

test('the flush interval of the command line is the one that counts', async (t) => {
  const { weir, file, ask } = await start(t, '--file-flush-interval-msec', '20');
  await ask(['/one']);
  await weir.untilStat('filesystem.write_completed', 1);
  await weir.untilStat('filesystem.write_total_buffered', 0);
  assert.equal(await weir.stat('filesystem.flushed_by_timer'), 1);
  assert.deepEqual(pathsIn(file), ['/one']);
});

test('entries on standard output are those that the filter lets pass, with the variables of the environment', async (t) => {
  const { weir, ask } = await start(t, '--concurrency', '2');
  await ask(['/out/1', '/in', '/out/2'], 1);
  const { stdout } = await weir.stop();
  assert.equal(stdout, 'out /out/1 pod-7\nout /out/2 pod-7\n');
});
