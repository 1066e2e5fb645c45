// What the admin interface tells of the process as the system sees it, in the real program.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { socketAddress } from '../support/bootstrap.ts';
import { runWeir, startWeir, type WeirProcess } from '../support/weir-process.ts';

const CONFIG = JSON.stringify({ admin: { address: socketAddress('127.0.0.1', 0) } });

async function figures(weir: WeirProcess, path: string): Promise<Record<string, number>> {
  const body = JSON.parse(await weir.admin(path)) as Record<string, string>;
  return Object.fromEntries(Object.entries(body).map(([name, text]) => [name, Number(text)]));
}

test('memory is that of all threads', async () => {
  await using one = await startWeir({ configYaml: CONFIG, args: ['--concurrency', '1'] });
  await using four = await startWeir({ configYaml: CONFIG, args: ['--concurrency', '4'] });
  const [small, large] = [await figures(one, '/memory'), await figures(four, '/memory')];
  for (const memory of [small, large]) {
    const { allocated, heap_size, pageheap_unmapped, pageheap_free, total_thread_cache } = memory;
    assert.equal(allocated! + pageheap_unmapped! + pageheap_free! + total_thread_cache!, heap_size);
    assert.ok(memory.total_physical_bytes! > allocated! / 2, JSON.stringify(memory));
  }
  // The engine of a thread needs some megabytes.
  assert.ok(large.allocated! - small.allocated! > 3 * 2 ** 20, JSON.stringify([small, large]));
});

test('contention is told where it is traced', async (t) => {
  await using plain = await startWeir({ configYaml: CONFIG });
  assert.match(
    await plain.admin('/contention'),
    /^Mutex contention tracing is not enabled\. To enable, run weir with flag/,
  );
  if (process.platform !== 'linux') return t.skip('needs Linux');
  await using traced = await startWeir({ configYaml: CONFIG, args: ['--enable-mutex-tracing'] });
  const first = await figures(traced, '/contention');
  assert.deepEqual(Object.keys(first), ['num_contentions', 'current_wait_cycles', 'lifetime_wait_cycles']);
  assert.ok(first.lifetime_wait_cycles! > 0, JSON.stringify(first));
  assert.ok(first.current_wait_cycles! <= first.lifetime_wait_cycles!, JSON.stringify(first));
  assert.doesNotMatch(traced.output.stderr, /mutex-tracing/);
});

for (const option of ['--use-dynamic-base-id', '--disable-hot-restart']) {
  test(`the version of hot restart is that which the command line prints, with ${option}`, async () => {
    await using weir = await startWeir({ configYaml: CONFIG, args: [option] });
    const { stderr } = await runWeir(['--hot-restart-version', option]);
    assert.equal(await weir.admin('/hot_restart_version'), stderr);
    assert.equal(JSON.parse(await weir.admin('/server_info')).hot_restart_version, stderr);
  });
}
