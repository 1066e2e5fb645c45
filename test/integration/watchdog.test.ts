// Threads of the real program whose event loops do not turn, or that are gone: who notices, what is counted and logged, and what
// becomes of them.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const PRELOADED = pathToFileURL(path.join(import.meta.dirname, '../support/blockable-threads.mjs')).href;
/** Quick enough for a test; a crowded machine counts more of them, never fewer. */
const QUICK = { miss_timeout: '0.05s', megamiss_timeout: '0.2s' };

interface Blockable {
  readonly weir: WeirProcess;
  /** These threads do nothing else, and all others go on. */
  block(...threads: string[]): void;
}

async function start(t: TestContext, watchdogs: JsonObject): Promise<Blockable> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-watchdog-'));
  const file = path.join(folder, 'blocked');
  const block = (...threads: string[]): void => writeFileSync(file, threads.join(' '));
  block();
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const configYaml = JSON.stringify({
    admin: { address: ANY_PORT },
    watchdogs,
    static_resources: { listeners: [listenerWith([manager], { address: ANY_PORT })] },
  });
  const weir = await startWeir({
    configYaml,
    args: ['--concurrency', '2'],
    env: { NODE_OPTIONS: `--import=${PRELOADED}`, WEIR_TEST_BLOCKED_THREADS: file },
  });
  t.after(async () => {
    block();
    await weir.stop('SIGKILL');
    rmSync(folder, { recursive: true });
  });
  return { weir, block };
}

function logged({ output }: WeirProcess, pattern: RegExp): Promise<void> {
  return untilEqual(true, () => pattern.test(output.stderr), `${pattern} in the log`);
}

test('a worker that is stuck is counted and reported with where it is, and goes on when it can', async (t) => {
  const { weir, block } = await start(t, { worker_watchdog: QUICK });
  const before = (await weir.stat('server.worker_1.watchdog_mega_miss'))!;
  block('worker_1');
  await untilEqual(true, async () => (await weir.stat('server.worker_1.watchdog_mega_miss'))! > before, 'a mega miss');
  assert.ok((await weir.stat('server.worker_1.watchdog_miss'))! > 0);
  assert.ok((await weir.stat('workers.watchdog_miss'))! >= (await weir.stat('server.worker_1.watchdog_miss'))!);
  await logged(weir, /worker 1 has not gone on for 200 ms; its connections wait; (it is here|where it is)/);
  block();
  const port = (await weir.listeners()).get('main')!.port;
  for (let round = 0; round < 20; round += 1) {
    assert.equal((await new WireClient(port).write(GET).response()).status, 200);
  }
  assert.equal(await weir.stat('server.worker_restarts'), 0);
});

test('a worker that is stuck for too long is ended, and another takes its place', async (t) => {
  const kill_timeout = '0.5s';
  const { weir, block } = await start(t, { worker_watchdog: { ...QUICK, kill_timeout } });
  block('worker_0');
  await logged(weir, /worker 0 is ended: it has not gone on for \d+ ms/);
  block();
  await untilEqual(true, async () => (await weir.stat('server.worker_restarts'))! > 0, 'a new worker');
  assert.match(weir.output.stderr, /worker 0 ended unexpectedly, its connections are lost: it has not gone on for/);
  const port = (await weir.listeners()).get('main')!.port;
  await untilEqual(
    200,
    () =>
      new WireClient(port)
        .write(GET)
        .response()
        .then(
          ({ status }) => status,
          () => 0,
        ),
    'the answer',
  );
});

test('several workers that are stuck end the process', async (t) => {
  const { weir, block } = await start(t, { worker_watchdog: { ...QUICK, multikill_timeout: '0.5s' } });
  block('worker_0', 'worker_1');
  const { signal, stderr } = await weir.exited;
  assert.equal(signal, 'SIGABRT');
  assert.match(stderr, /2 workers have not gone on for 500 ms: the process is aborted/);
});

test('the main thread is watched by the workers, which serve on', async (t) => {
  const { weir, block } = await start(t, { main_thread_watchdog: QUICK });
  const port = (await weir.listeners()).get('main')!.port;
  block('main');
  for (let round = 0; round < 5; round += 1) {
    assert.equal((await new WireClient(port).write(GET).response()).status, 200);
  }
  // Nobody sees a stat meanwhile. On a crowded machine the workers may not have looked often enough.
  const untilCounted = async (): Promise<void> => {
    block('main');
    await delay(1000);
    block();
    if ((await weir.stat('main_thread.watchdog_mega_miss')) === 0) await untilCounted();
  };
  await untilCounted();
  assert.ok((await weir.stat('main_thread.watchdog_miss'))! > 0);
  assert.equal(await weir.stat('server.main_thread.watchdog_miss'), await weir.stat('main_thread.watchdog_miss'));
  await logged(weir, /the main thread has not gone on for 200 ms/);
});

test('a main thread that is stuck for too long ends the process', async (t) => {
  const { weir, block } = await start(t, { main_thread_watchdog: { ...QUICK, kill_timeout: '0.5s' } });
  block('main');
  const { signal, stderr } = await weir.exited;
  assert.equal(signal, 'SIGABRT');
  assert.match(stderr, /weir: the main thread has not gone on for 500 ms: the process is aborted/);
});

test('a killed process leaves nothing behind that keeps the next one from its places', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-killed-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const listener = (name: string, address: JsonObject): JsonObject => listenerWith([manager], { name, address });
  const bootstrap = (port: number): string => {
    const listeners = [
      listener('main', socketAddress('127.0.0.1', port)),
      listener('pipe', { pipe: { path: path.join(folder, 'socket') } }),
    ];
    return JSON.stringify({ admin: { address: ANY_PORT }, static_resources: { listeners } });
  };
  const first = await startWeir({ configYaml: bootstrap(0) });
  const { port } = (await first.listeners()).get('main')!;
  const idle = new WireClient(port).write(GET);
  assert.equal((await idle.response()).status, 200);
  assert.equal((await first.stop('SIGKILL')).signal, 'SIGKILL');
  assert.equal(await idle.rest(), '');
  assert.equal(idle.error, null);
  await using second = await startWeir({ configYaml: bootstrap(port) });
  assert.equal((await second.listeners()).get('main')!.port, port);
  assert.equal((await new WireClient(port).write(GET).response()).status, 200);
});
