// Threads of the real program whose heaps are full: a worker is replaced, and the process ends with the main thread.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { httpFilter, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const PRELOADED = pathToFileURL(path.join(import.meta.dirname, '../support/leaking-threads.mjs')).href;
/** Of each thread: enough to serve, and soon full. */
const HEAP = '--max-old-space-size=64';

interface Leaking {
  readonly weir: WeirProcess;
  leak(thread: string): void;
}

async function start(t: TestContext): Promise<Leaking> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-memory-'));
  const file = path.join(folder, 'leaking');
  writeFileSync(file, '');
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const configYaml = JSON.stringify({
    admin: { address: ANY_PORT },
    static_resources: { listeners: [listenerWith([manager], { name: 'main', address: ANY_PORT })] },
  });
  const weir = await startWeir({
    configYaml,
    args: ['--concurrency', '2'],
    env: { NODE_OPTIONS: `${HEAP} --import=${PRELOADED}`, WEIR_TEST_LEAKING_THREADS: file },
  });
  t.after(async () => {
    await weir.stop('SIGKILL');
    rmSync(folder, { recursive: true });
  });
  return { weir, leak: (thread) => writeFileSync(file, thread) };
}

test('a worker whose heap is full is told of, counted and replaced, and the other one serves all the while', async (t) => {
  const { weir, leak } = await start(t);
  const { port } = (await weir.listeners()).get('main')!;
  const ask = async (): Promise<number> => {
    const client = new WireClient(port);
    const { status } = await client.write(GET).response();
    client.close();
    return status;
  };
  for (let index = 0; index < 8; index += 1) assert.equal(await ask(), 200);
  leak('worker_1');
  await untilEqual(1, () => weir.stat('server.worker_restarts'), 'a restart');
  assert.match(weir.output.stderr, /worker 1 .*memory/);
  await untilEqual(1, () => weir.stat('listener_manager.workers_started'), 'all workers');
  for (let index = 0; index < 8; index += 1) assert.equal(await ask(), 200);
  await weir.untilStat('http.ingress.downstream_rq_2xx', 16);
  await weir.untilStat('http.ingress.downstream_cx_active', 0);
  assert.equal((await weir.stop()).code, 0);
});

test('the process ends with a signal when the heap of its main thread is full', async (t) => {
  const { weir, leak } = await start(t);
  leak('main');
  const { signal } = await weir.exited;
  assert.equal(signal, 'SIGABRT');
  assert.match(weir.output.stderr, /heap out of memory/);
});
