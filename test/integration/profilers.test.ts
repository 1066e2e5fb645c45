// The profilers of the real program: files that pprof reads, of all threads, and what becomes of orders that cannot be obeyed.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { assigned, httpFilter, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { Fifo } from '../support/fifo.ts';
import { goToolPprof, hasGoTool, type ReadProfile, readProfile } from '../support/pprof.ts';
import { arrived, silent } from '../support/silent-upstream.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const MIB = 1024 * 1024;
const ARGS = ['--concurrency', '2'];

function bootstrap(profilePath: string, upstreamPort = 0): string {
  const answer = { direct_response: { status: 200 } };
  const routes = [{ match: { prefix: '/' }, ...(upstreamPort === 0 ? answer : { route: { cluster: 'web' } }) }];
  const upstream = [{ lb_endpoints: [{ endpoint: { address: socketAddress('127.0.0.1', upstreamPort) } }] }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  return JSON.stringify({
    admin: { address: ANY_PORT, profile_path: profilePath },
    static_resources: {
      listeners: [listenerWith([manager], { name: 'main', address: ANY_PORT })],
      clusters: upstreamPort === 0 ? [] : [assigned(upstream)],
    },
  });
}

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-profiles-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function order(weir: WeirProcess, which: 'cpuprofiler' | 'heapprofiler', enable: 'y' | 'n'): Promise<string> {
  const response = await fetch(`${weir.adminUrl}/${which}?enable=${enable}`, { method: 'POST' });
  return `${response.status} ${await response.text()}`;
}

/** Requests over enough connections that every worker has some. */
async function traffic(weir: WeirProcess): Promise<void> {
  const { port } = (await weir.listeners()).get('main')!;
  const clients = Array.from({ length: 16 }, () => new WireClient(port));
  for (let round = 0; round < 50; round += 1) {
    for (const client of clients) client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    for (const client of clients) assert.equal((await client.response()).status, 200);
  }
  for (const client of clients) client.close();
}

function threadsOf({ samples }: ReadProfile): string[] {
  return [...new Set(samples.map(({ thread }) => thread))].sort();
}

/** Places of functions are those of the sources. */
function hasDataPlane({ samples }: ReadProfile): boolean {
  return samples.some(({ stack }) => stack.some((place) => / src\/data-plane\/.*\.ts:\d+$/.test(place)));
}

const ALL_THREADS = ['main', 'worker_0', 'worker_1'];
const BUSY_THREADS = ['worker_0', 'worker_1'];

test('a profile of processors has the functions of all threads that work, and can be taken again', async (t) => {
  const file = path.join(folderOf(t), 'weir.prof');
  await using weir = await startWeir({ configYaml: bootstrap(file), args: ARGS });
  assert.equal(await order(weir, 'cpuprofiler', 'n'), '200 OK\n');
  for (let take = 0; take < 2; take += 1) {
    assert.equal(await order(weir, 'cpuprofiler', 'y'), '200 OK\n');
    assert.equal(await order(weir, 'cpuprofiler', 'y'), '200 OK\n');
    // Workers are looked at 200 times a second, and may have had little to do of their own.
    let profile: ReadProfile;
    do {
      await traffic(weir);
      assert.equal(await order(weir, 'cpuprofiler', 'n'), '200 OK\n');
      profile = readProfile(readFileSync(file));
      assert.equal(await order(weir, 'cpuprofiler', 'y'), '200 OK\n');
    } while (!BUSY_THREADS.every((thread) => threadsOf(profile).includes(thread)) || !hasDataPlane(profile));
    assert.equal(await order(weir, 'cpuprofiler', 'n'), '200 OK\n');
    assert.deepEqual([profile.types, profile.period], [['samples/count', 'cpu/nanoseconds'], 5_000_000]);
  }
  assert.deepEqual(readdirSync(path.dirname(file)), ['weir.prof']);
  if (!(await hasGoTool())) return t.diagnostic('go is not installed');
  assert.match(await goToolPprof(readFileSync(file), '-top'), /Showing nodes accounting for/);
});

test('a profile of heaps has what all threads have allocated since', async (t) => {
  const file = path.join(folderOf(t), 'weir.prof');
  await using weir = await startWeir({ configYaml: bootstrap(file), args: ARGS });
  assert.equal(await order(weir, 'heapprofiler', 'n'), '400 Fail to stop heap profiler: not started');
  assert.equal(await order(weir, 'heapprofiler', 'y'), '200 Starting heap profiler');
  assert.equal(await order(weir, 'heapprofiler', 'y'), '400 Fail to start heap profiler: already started');
  await traffic(weir);
  // Both profilers may run.
  assert.equal(await order(weir, 'cpuprofiler', 'y'), '200 OK\n');
  assert.equal(await order(weir, 'cpuprofiler', 'n'), '200 OK\n');
  const stopped = await order(weir, 'heapprofiler', 'n');
  assert.ok(stopped.startsWith(`200 Heap profiler stopped and data written to ${file}. See https://`), stopped);
  const profile = readProfile(readFileSync(file));
  assert.deepEqual(profile.types, ['inuse_objects/count', 'inuse_space/bytes']);
  assert.equal(await order(weir, 'heapprofiler', 'n'), '400 Fail to stop heap profiler: not started');
  if (!(await hasGoTool())) return t.diagnostic('go is not installed');
  assert.match(await goToolPprof(readFileSync(file), '-top'), /Type: inuse_space/);
});

test('a dump of heaps has the classes of all threads, one dump at a time, and serving goes on', async (t) => {
  await using weir = await startWeir({ configYaml: bootstrap(path.join(folderOf(t), 'weir.prof')), args: ARGS });
  await traffic(weir);
  const dumps = await Promise.all([1, 2].map(() => fetch(`${weir.adminUrl}/heap_dump`)));
  assert.deepEqual(dumps.map(({ status }) => status).sort(), [200, 503]);
  const whole = dumps.find(({ status }) => status === 200)!;
  const file = Buffer.from(await whole.arrayBuffer());
  const profile = readProfile(file);
  assert.deepEqual(threadsOf(profile), ALL_THREADS);
  const has = (thread: string, name: string): boolean =>
    profile.samples.some((sample) => sample.thread === thread && sample.stack[0]!.startsWith(`${name} `));
  assert.deepEqual([has('main', 'ClusterManager'), has('worker_1', 'ConnectionManager')], [true, true]);
  await traffic(weir);
  if (!(await hasGoTool())) return t.diagnostic('go is not installed');
  assert.match(await goToolPprof(file, '-top', '-sample_index=inuse_space'), /\(string\)/);
});

test('a dump of heaps gives back the memory that it has taken', async () => {
  await using weir = await startWeir({ configYaml: bootstrap('/dev/null'), args: ARGS });
  const residentBytes = async (): Promise<number> => {
    const memory = (await (await fetch(`${weir.adminUrl}/memory`)).json()) as { total_physical_bytes: string };
    return Number(memory.total_physical_bytes);
  };
  const before = await residentBytes();
  await (await fetch(`${weir.adminUrl}/heap_dump`)).arrayBuffer();
  const grown = (await residentBytes()) - before;
  // 30 MiB here, which the engine keeps to know its objects again; 150 MiB and more while the snapshots are there.
  assert.ok(grown < 80 * MIB, `${(grown / MIB).toFixed(0)} MiB`);
});

test('orders that cannot be obeyed say why, and leave what was there', async (t) => {
  const folder = folderOf(t);
  {
    const missing = path.join(folder, 'nowhere', 'weir.prof');
    await using weir = await startWeir({ configYaml: bootstrap(missing), args: ARGS });
    for (const [which, what] of [
      ['cpuprofiler', 'failure to start the profiler'],
      ['heapprofiler', 'Fail to start the heap profiler'],
    ] as const) {
      const answer = await order(weir, which, 'y');
      assert.ok(answer.startsWith(`500 ${what}: cannot write a profile to ${missing}: ENOENT`), answer);
    }
    assert.equal(await order(weir, 'heapprofiler', 'n'), '400 Fail to stop heap profiler: not started');
    assert.match(await order(weir, 'cpuprofiler', 'n'), /^200 OK/);
    await traffic(weir);
    assert.ok(!existsSync(path.dirname(missing)));
  }
  // A disk without room.
  await using full = await startWeir({ configYaml: bootstrap('/dev/full'), args: ARGS });
  assert.equal(await order(full, 'cpuprofiler', 'y'), '200 OK\n');
  assert.match(
    await order(full, 'cpuprofiler', 'n'),
    /^500 failure to stop the profiler: cannot write a profile to \/dev\/full: ENOSPC/,
  );
  assert.equal(await order(full, 'heapprofiler', 'y'), '200 Starting heap profiler');
  assert.match(await order(full, 'heapprofiler', 'n'), /^500 Fail to stop the heap profiler: .*ENOSPC/);
  assert.equal(await order(full, 'heapprofiler', 'y'), '200 Starting heap profiler');
  await traffic(full);
});

test('nobody waits for a pipe without a reader', async (t) => {
  const pipe = path.join(folderOf(t), 'pipe');
  await Fifo.make(pipe);
  await using weir = await startWeir({ configYaml: bootstrap(pipe), args: ARGS });
  assert.match(await order(weir, 'cpuprofiler', 'y'), /^500 .*ENXIO/);
});

/** glibc fills memory with this when it is given back: whoever reads it afterwards finds out at once, and not once in a thousand times. */
const UNFORGIVING = { MALLOC_PERTURB_: '165' };

test('the program ends well while profilers run, and writes nothing over what is there', async (t) => {
  const file = path.join(folderOf(t), 'weir.prof');
  writeFileSync(file, 'mine');
  for (const env of [{}, UNFORGIVING]) {
    await using weir = await startWeir({ configYaml: bootstrap(file), args: ARGS, env });
    assert.equal(await order(weir, 'cpuprofiler', 'y'), '200 OK\n');
    assert.equal(await order(weir, 'heapprofiler', 'y'), '200 Starting heap profiler');
    await traffic(weir);
    const { code, signal } = await weir.stop();
    assert.deepEqual([code, signal], [0, null]);
  }
  assert.equal(readFileSync(file, 'utf8'), 'mine');
  assert.deepEqual(readdirSync(path.dirname(file)), ['weir.prof']);
});

test('the program ends at once while profilers run', async (t) => {
  const upstream = await silent();
  t.after(() => upstream.close());
  const configYaml = bootstrap(path.join(folderOf(t), 'weir.prof'), upstream.port);
  await using weir = await startWeir({ configYaml, args: ARGS, env: UNFORGIVING });
  assert.equal(await order(weir, 'cpuprofiler', 'y'), '200 OK\n');
  assert.equal(await order(weir, 'heapprofiler', 'y'), '200 Starting heap profiler');
  const { port } = (await weir.listeners()).get('main')!;
  const client = new WireClient(port);
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await arrived(upstream.requests, 1);
  // The end waits for the request; what comes more than half a second behind the first signal is a second one.
  const stopped = weir.stop();
  const again = setInterval(() => void weir.stop().catch(() => {}), 600);
  const { code, signal } = await stopped.finally(() => clearInterval(again));
  assert.deepEqual([code, signal], [1, null]);
  client.close();
});
