// The program as one file, in a folder with nothing else in it and without Node on PATH.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { type JsonObject, socketAddress } from '../support/bootstrap.ts';
import { collectOutput, type Program, runProgram, startProgram } from '../support/child-process.ts';
import { clusterAt, httpListener, NamedUpstream, textOf } from '../support/embedded.ts';
import { untilEqual } from '../support/eventually.ts';
import { PORTS, RestartRow } from '../support/restart-row.ts';

const CLUSTER_TYPE = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-exe-')));
const alone = path.join(folder, 'alone');
const cache = path.join(folder, 'cache');
const weir = path.join(alone, 'weir');
const env = { PATH: '/nonexistent', HOME: '/nonexistent', XDG_CACHE_HOME: cache, NODE_COMPILE_CACHE: '' };
// What the launcher does for the program in a package, Linux does for this one.
const skip = process.platform === 'linux' ? false : 'made and tried on Linux alone';

before(async () => {
  if (skip !== false) return;
  const built = await runProgram(process.execPath, [path.join(PACKAGE_ROOT, 'scripts/build-exe.mjs'), folder]);
  assert.equal(built.code, 0, built.stderr);
  mkdirSync(alone);
  renameSync(path.join(folder, 'weir'), weir);
});
after(() => rmSync(folder, { recursive: true }));

/** The program with a bootstrap, ready, and what its admin interface says. */
async function serving(bootstrap: JsonObject): Promise<{
  program: Program;
  exited: Promise<unknown[]>;
  adminText: (at: string) => Promise<string>;
}> {
  const addressFile = path.join(folder, 'admin.txt');
  writeFileSync(addressFile, '127.0.0.1:1');
  const admin = { address: socketAddress('127.0.0.1', 0) };
  const args = ['--disable-hot-restart', '--concurrency', '2', '--admin-address-path', addressFile];
  const whole = ['--config-yaml', JSON.stringify({ admin, ...bootstrap })];
  const program = startProgram(weir, [...args, ...whole], { cwd: alone, env });
  const { output } = collectOutput(program);
  const exited = once(program, 'exit');
  let isRunning = true;
  void exited.then(() => {
    isRunning = false;
  });
  const adminText = (at: string): Promise<string> =>
    textOf(`http://${readFileSync(addressFile, 'utf8')}${at}`).catch(() => '');
  const ready = async (): Promise<string> => {
    assert.ok(isRunning, output.stderr);
    return await adminText('/ready');
  };
  await untilEqual('LIVE\n', ready, '/ready');
  return { program, exited, adminText };
}

describe('the single executable', { skip }, () => {
  it('says what it is, having unpacked itself for this user once', async () => {
    const [first, second] = await Promise.all([
      runProgram(weir, ['--version'], { cwd: alone, env }),
      runProgram(weir, ['--version'], { cwd: alone, env }),
    ]);
    for (const { code, stdout, stderr } of [first, second]) {
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /^\nweir {2}version: [0-9a-f]{40}\/\d+\.\d+\.\d+\/\w+\/RELEASE\//);
    }
    assert.equal(readdirSync(path.join(cache, 'weir')).length, 1);
    assert.deepEqual(readdirSync(alone), ['weir']);
  });

  it('serves with threads of its own, matches expressions, answers at its admin interface, and ends on SIGTERM', async () => {
    await using upstream = await NamedUpstream.start('web');
    const listener = JSON.stringify(httpListener('http', 'web')).replace(
      '{"prefix":"/"}',
      '{"safe_regex":{"regex":"/a+"}}',
    );
    const bootstrap = {
      static_resources: { listeners: [JSON.parse(listener)], clusters: [clusterAt('web', upstream.port)] },
    };
    const { program, exited, adminText } = await serving(bootstrap);
    const { listener_statuses: listeners } = JSON.parse(await adminText('/listeners?format=json'));
    const url = `http://127.0.0.1:${listeners[0].local_address.socket_address.port_value}`;
    assert.equal(await textOf(`${url}/aaa`), 'web');
    assert.equal((await fetch(`${url}/b`, { headers: { connection: 'close' } })).status, 404);
    assert.match(await adminText('/'), /<html/);
    // To reopen logs; neither the end nor the debugger.
    program.kill('SIGUSR1');
    assert.equal(await adminText('/ready'), 'LIVE\n');
    program.kill('SIGTERM');
    assert.deepEqual(await exited, [0, null]);
  });

  it('has a large file of clusters read by a thread of its own', async () => {
    const file = path.join(folder, 'clusters.json');
    const clusters = Array.from({ length: 2000 }, (_, i) => clusterAt(`c${i}`, 9));
    const resources = clusters.map((cluster) => ({ '@type': CLUSTER_TYPE, ...cluster }));
    writeFileSync(file, JSON.stringify({ resources }));
    const { program, exited, adminText } = await serving({
      node: { id: 'alone', cluster: 'alone' },
      dynamic_resources: { cds_config: { path_config_source: { path: file } } },
    });
    const active = (): Promise<string> => adminText('/stats?filter=^cluster_manager.active_clusters$');
    assert.equal(await active(), 'cluster_manager.active_clusters: 2000\n');
    writeFileSync(`${file}.new`, JSON.stringify({ resources: resources.slice(1) }));
    renameSync(`${file}.new`, file);
    await untilEqual('cluster_manager.active_clusters: 1999\n', active, 'clusters of the next file');
    program.kill('SIGTERM');
    assert.deepEqual(await exited, [0, null]);
  });

  it('restarts itself, under the name of the restarter or with that as its first argument', async (t) => {
    await using row = await RestartRow.open();
    const file = path.join(row.folder, 'bootstrap.json');
    writeFileSync(file, JSON.stringify(row.bootstrap()));
    const named = path.join(folder, 'weir-hot-restarter');
    linkSync(weir, named);
    const args = [
      '--',
      'weir',
      '-c',
      file,
      '--base-id',
      String(row.baseId),
      '--concurrency',
      '1',
      '--drain-time-s',
      '1',
    ];
    for (const [command, ...first] of [[named], [weir, 'weir-hot-restarter']] as const) {
      const program = startProgram(command, [...first, ...args], { cwd: alone, env });
      t.after(() => program.kill());
      const { output, exited } = collectOutput(program);
      for (const epoch of [0, 1]) {
        if (epoch > 0) program.kill('SIGHUP');
        const text = `restart epoch ${epoch} is ready`;
        await untilEqual(true, () => output.stderr.includes(text), `"${text}" in ${output.stderr}`);
        assert.equal((await fetch(`http://${row.ip}:${PORTS.http}/`)).status, 200);
      }
      program.kill('SIGTERM');
      assert.equal((await exited).code, 0);
    }
  });

  it('does not run what others may have written', async () => {
    const [unpacked] = readdirSync(path.join(cache, 'weir'));
    chmodSync(path.join(cache, 'weir', unpacked!), 0o777);
    const temporary = path.join(folder, 'tmp');
    mkdirSync(temporary);
    const { code } = await runProgram(weir, ['--version'], { cwd: alone, env: { ...env, TMPDIR: temporary } });
    assert.equal(code, 0);
    assert.equal(readdirSync(temporary).length, 1);
  });
});
