import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import {
  CELLS_PER_SLAB,
  CLUSTER_RECORD_SIZE,
  HEADER_LAYOUT_VERSION,
  HEAP_AT,
  HOST_RECORD_SIZE,
  LAYOUT_VERSION,
  SLAB_SIZE,
} from '../../assembly/layout/shared-memory.ts';
import { WeirError } from '../../src/base/errors.ts';
import { MAX_WORKERS } from '../../src/base/worker-limit.ts';
import { ClusterCount, ClusterPriority, HealthFlag, SharedMemory } from '../../src/wasm/shared-memory.ts';
import { SharedMemoryOwner } from '../../src/wasm/shared-memory-owner.ts';
import { CommandedWorker } from '../support/shared-memory-worker.ts';

const MIB = 1024 * 1024;
const { default: DEFAULT, high: HIGH } = ClusterPriority;

function hasCode(code: string, text: RegExp = /./): (error: unknown) => boolean {
  return (error) => error instanceof WeirError && error.code === code && text.test(error.message);
}

const threads: CommandedWorker[] = [];
after(async () => {
  await Promise.all(threads.map((thread) => thread.stop()));
});

function startThread(owner: SharedMemoryOwner, workerIndex: number): CommandedWorker {
  const thread = new CommandedWorker(owner.memory, workerIndex);
  threads.push(thread);
  return thread;
}

test('has room for as many workers as the command line allows', () => {
  const owner = new SharedMemoryOwner({ workerCount: MAX_WORKERS });
  assert.equal(SharedMemory.attach(owner.memory, MAX_WORKERS - 1).slab, MAX_WORKERS);
  assert.throws(() => new SharedMemoryOwner({ workerCount: MAX_WORKERS + 1 }));
});

test('a worker refuses memory of another layout, memory that is none of ours, and an index without a slab', () => {
  const owner = new SharedMemoryOwner({ workerCount: 2 });
  assert.equal(SharedMemory.attach(owner.memory, 1).slab, 2);
  assert.throws(
    () => SharedMemory.attach(owner.memory, 2),
    hasCode('WEIR_SHARED_MEMORY_INVALID', /worker 2 .* 2 workers/),
  );
  assert.throws(() => SharedMemory.attach(owner.memory, -1), hasCode('WEIR_SHARED_MEMORY_INVALID'));
  const foreign = new WebAssembly.Memory({ shared: true, initial: 1, maximum: 2 });
  assert.throws(() => SharedMemory.attach(foreign, 0), hasCode('WEIR_SHARED_MEMORY_INVALID', /magic 0/));
  owner.shared.i32[HEADER_LAYOUT_VERSION / 4]! += 1;
  assert.throws(
    () => SharedMemory.attach(owner.memory, 0),
    hasCode('WEIR_SHARED_MEMORY_INVALID', new RegExp(`layout ${LAYOUT_VERSION + 1} `)),
  );
});

test('impossible sizes are refused with the argument and its range', () => {
  const refused = (options: { workerCount: number; maxBytes?: number }, text: RegExp): void =>
    assert.throws(() => new SharedMemoryOwner(options), hasCode('WEIR_SHARED_MEMORY_OPTIONS', text));
  refused({ workerCount: 0 }, /workerCount: 0 .* 1 to 511/);
  refused({ workerCount: 512 }, /workerCount: 512/);
  refused({ workerCount: 1.5 }, /workerCount: 1.5/);
  refused({ workerCount: 1, maxBytes: 1000 }, /maxBytes: 1000/);
  refused({ workerCount: 1, maxBytes: 5 * 1024 * MIB }, /maxBytes/);
});

test('memory that is used up says so, and what was there before stays usable', () => {
  const owner = new SharedMemoryOwner({ workerCount: 1, maxBytes: HEAP_AT + 2_031_616 });
  const blocks: number[] = [];
  assert.throws(
    () => {
      for (;;) blocks.push(owner.heap.allocate(100_000));
    },
    hasCode('WEIR_SHARED_MEMORY_FULL', /100096 bytes asked for, 2001920 in use/),
  );
  assert.equal(blocks.length, 20, 'grown to the last page that the maximum allows');
  owner.heap.free(blocks[7]!);
  assert.equal(owner.heap.allocate(100_000), blocks[7]);
  assert.throws(() => owner.cells.allocate(CELLS_PER_SLAB), hasCode('WEIR_SHARED_MEMORY_FULL'));
  assert.throws(() => owner.recordAllocator.allocateHost(1), hasCode('WEIR_SHARED_MEMORY_FULL'));
  assert.equal(owner.cells.usedCells, 0, 'a refused host keeps no ledger');
});

test('heap blocks never overlap, are aligned, and melt together again when freed in any order', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(sizes, fc.infiniteStream(fc.nat()), (wanted, choices) => {
      const { heap, shared } = new SharedMemoryOwner({ workerCount: 1, maxBytes: 64 * MIB });
      const live = new Map<number, number>();
      for (const size of wanted) {
        const address = heap.allocate(size);
        assert.equal(address % 128, 0);
        assert.ok(address >= HEAP_AT && address + size <= shared.byteLength);
        for (const [other, length] of live) assert.ok(address + size <= other || other + length <= address);
        live.set(address, size);
        if (choices.next().value! % 3 === 0) freeOne(choices.next().value!);
      }
      while (live.size > 0) freeOne(choices.next().value!);
      assert.equal(heap.usedBytes, 0);
      assert.equal(heap.freeRangeCount, heap.spannedBytes > 0 ? 1 : 0);

      function freeOne(choice: number): void {
        const address = [...live.keys()][choice % live.size]!;
        live.delete(address);
        heap.free(address);
      }
    }),
    { numRuns: 60 },
  );
});

test('ten thousand rounds of freeing and allocating tables, cells and records of mixed sizes do not grow the memory', () => {
  const owner = new SharedMemoryOwner({ workerCount: 3 });
  const { heap, cells, recordAllocator } = owner;
  const tableSizes = [200, 4096, 65_537, 131_072, 1_000_003];
  let state = 1;
  const random = (below: number): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  const tables = Array.from({ length: 40 }, () => heap.allocate(tableSizes[random(5)]!));
  const blocks = Array.from({ length: 200 }, () => cells.allocate(101));
  const records = Array.from({ length: 300 }, () => recordAllocator.allocateHost(1));
  const round = (): void => {
    const table = random(tables.length);
    heap.free(tables[table]!);
    tables[table] = heap.allocate(tableSizes[random(5)]!);
    const block = random(blocks.length);
    cells.free(blocks[block]!, 101);
    blocks[block] = cells.allocate(101);
    const record = random(records.length);
    recordAllocator.free(records[record]!);
    records[record] = recordAllocator.allocateHost(1);
  };
  // What lives at once changes from round to round, so the span is held against the most that ever did.
  let mostInUse = 0;
  for (let n = 0; n < 10_000; n++) {
    round();
    mostInUse = Math.max(mostInUse, heap.usedBytes);
  }
  assert.ok(heap.spannedBytes <= mostInUse * 1.15, `${heap.spannedBytes} bytes spanned for ${mostInUse}`);
  assert.ok(heap.freeRangeCount < 40, `${heap.freeRangeCount} holes`);
  assert.equal(new Set(blocks).size, blocks.length);
  assert.equal(new Set(records).size, records.length);
});

test('freeing what was never allocated is refused', () => {
  const { heap } = new SharedMemoryOwner({ workerCount: 1 });
  assert.throws(() => heap.free(HEAP_AT), hasCode('WEIR_SHARED_MEMORY_ADDRESS'));
  const block = heap.allocate(1);
  heap.free(block);
  assert.throws(() => heap.free(block), hasCode('WEIR_SHARED_MEMORY_ADDRESS'));
});

test('cell blocks never overlap, lie within one slab, and come back untouched', () => {
  const owner = new SharedMemoryOwner({ workerCount: 2 });
  const { cells, shared } = owner;
  const counts = fc.array(fc.oneof(fc.integer({ min: 1, max: 130 }), fc.integer({ min: 1, max: CELLS_PER_SLAB })), {
    minLength: 1,
    maxLength: 80,
  });
  fc.assert(
    fc.property(counts, (wanted) => {
      const taken = new Set<number>();
      const blocks = wanted.map((count) => ({ cell: cells.allocate(count), count }));
      for (const { cell, count } of blocks) {
        assert.ok(cell > 0);
        for (let slab = 0; slab < shared.slabCount; slab++) {
          for (let at = 0; at < count; at++) {
            const index = cell + slab * CELLS_PER_SLAB + at;
            assert.ok(Object.is(shared.f64[index], -0), 'untouched');
            assert.ok(!taken.has(index), 'not handed out twice');
            taken.add(index);
            shared.f64[index] = 5;
          }
        }
      }
      for (const { cell, count } of blocks) cells.free(cell, count);
    }),
    { numRuns: 15 },
  );
  assert.equal(cells.usedCells, 0);
});

test('places that workers may still write are freed only after the mark that followed their retirement', () => {
  const { reclaimer } = new SharedMemoryOwner({ workerCount: 1 });
  const freed: string[] = [];
  reclaimer.retire(() => freed.push('a'));
  const first = reclaimer.mark();
  reclaimer.retire(() => freed.push('b'));
  const second = reclaimer.mark();
  reclaimer.reclaim(first);
  assert.deepEqual(freed, ['a']);
  reclaimer.retire(() => freed.push('c'));
  reclaimer.reclaim(second);
  assert.deepEqual(freed, ['a', 'b']);
  assert.equal(reclaimer.waitingCount, 1);
});

test('records of two hosts or clusters share no cache line', () => {
  const owner = new SharedMemoryOwner({ workerCount: 1 });
  assert.ok(HOST_RECORD_SIZE % 128 === 0 && CLUSTER_RECORD_SIZE % 128 === 0);
  const addresses = Array.from({ length: 200 }, (_, at) =>
    at % 2 === 0 ? owner.recordAllocator.allocateHost(1) : owner.recordAllocator.allocateCluster(),
  );
  assert.ok(addresses.every((address) => address % 128 === 0));
  assert.equal(new Set(addresses).size, addresses.length);
});

test('health flags are set one by one and report whether they changed', () => {
  const owner = new SharedMemoryOwner({ workerCount: 1 });
  const { records } = owner.shared;
  const host = owner.recordAllocator.allocateHost(3);
  assert.equal(records.weight(host), 3);
  records.setWeight(host, 2 ** 32 - 1);
  assert.equal(records.weight(host), 2 ** 32 - 1);
  assert.equal(records.setHealthFlag(host, HealthFlag.failedActiveHealthCheck, true), true);
  assert.equal(records.setHealthFlag(host, HealthFlag.failedActiveHealthCheck, true), false);
  assert.equal(records.setHealthFlag(host, HealthFlag.failedOutlierCheck, true), true);
  assert.equal(records.healthFlags(host), 3);
  assert.equal(records.setHealthFlag(host, HealthFlag.failedActiveHealthCheck, false), true);
  assert.equal(records.healthFlags(host), 2);
  owner.recordAllocator.free(host);
  assert.equal(records.healthFlags(owner.recordAllocator.allocateHost(1)), 0, 'a reused record starts afresh');
});

test('a worker sees records that lie beyond the memory that it knew', () => {
  const owner = new SharedMemoryOwner({ workerCount: 1 });
  const worker = SharedMemory.attach(owner.memory, 0);
  const before = owner.memory.buffer.byteLength;
  let host = owner.recordAllocator.allocateHost(7);
  while (host < before) host = owner.recordAllocator.allocateHost(7);
  assert.equal(worker.records.activeRequests(host), 0);
  assert.equal(SharedMemory.attach(owner.memory, 0).records.weight(host), 7);
});

test('two threads that hammer the same cells and records lose no count', async () => {
  const owner = new SharedMemoryOwner({ workerCount: 2 });
  const cluster = owner.recordAllocator.allocateCluster();
  const host = owner.recordAllocator.allocateHost(1);
  const block = owner.cells.allocate(16);
  const { records, f64 } = owner.shared;
  const workers = [startThread(owner, 0), startThread(owner, 1)];
  const runAll = (command: Parameters<CommandedWorker['run']>[0]): Promise<number[]> =>
    Promise.all(workers.map((worker) => worker.run(command)));

  await runAll({ do: 'count', block, cells: 16, rounds: 50_000 });
  for (let cell = 0; cell < 16; cell++) {
    const slabs = [1, 2].map((slab) => f64[block + slab * CELLS_PER_SLAB + cell]);
    assert.deepEqual(slabs, [50_000, 50_000]);
  }

  await runAll({ do: 'hammer-records', host, cluster, rounds: 100_000, keep: 3 });
  assert.equal(records.activeRequests(host), 6);
  assert.equal(records.activeConnections(host), 6);
  assert.equal(records.clusterCount(cluster, DEFAULT, ClusterCount.requests), 6);
  assert.equal(records.clusterCount(cluster, HIGH, ClusterCount.pendingRequests), 6);
  assert.equal(records.clusterCount(cluster, DEFAULT, ClusterCount.pendingRequests), 0, 'priorities are apart');

  const limited = owner.recordAllocator.allocateCluster();
  const got = await runAll({ do: 'acquire', cluster: limited, limit: 30_001, attempts: 40_000 });
  assert.equal(got[0]! + got[1]!, 30_001, 'a limit holds exactly over all threads');
  assert.equal(records.clusterCount(limited, DEFAULT, ClusterCount.requests), 30_001);

  const [count, other] = [owner.recordAllocator.allocateCount(), owner.recordAllocator.allocateCount()];
  const taken = await runAll({ do: 'acquire-count', record: count, limit: 30_001, attempts: 40_000 });
  assert.equal(taken[0]! + taken[1]!, 30_001, 'and so does that of a count of its own');
  assert.equal(records.count(count), 30_001);
  assert.equal(records.addCount(count, -1), 30_000);
  assert.equal(records.count(other), 0);
});

test('what a crashed worker held leaves the totals, what others hold stays', async () => {
  const owner = new SharedMemoryOwner({ workerCount: 2 });
  const cluster = owner.recordAllocator.allocateCluster();
  const host = owner.recordAllocator.allocateHost(1);
  const { records } = owner.shared;
  const [crashing, staying] = [startThread(owner, 0), startThread(owner, 1)];
  await crashing.run({ do: 'hammer-records', host, cluster, rounds: 10, keep: 5 });
  await staying.run({ do: 'hammer-records', host, cluster, rounds: 10, keep: 2 });
  const count = owner.recordAllocator.allocateCount();
  await crashing.run({ do: 'acquire-count', record: count, limit: 9, attempts: 4 });
  await staying.run({ do: 'acquire-count', record: count, limit: 9, attempts: 3 });
  await assert.rejects(crashing.run({ do: 'crash' }), /ended with 7/);
  assert.equal(records.activeRequests(host), 7);

  owner.clearWorker(0);

  assert.equal(records.activeRequests(host), 2);
  assert.equal(records.activeConnections(host), 2);
  assert.equal(records.clusterCount(cluster, DEFAULT, ClusterCount.requests), 2);
  assert.equal(records.clusterCount(cluster, HIGH, ClusterCount.pendingRequests), 2);
  assert.equal(records.count(count), 3);
  const restarted = startThread(owner, 0);
  await restarted.run({ do: 'hammer-records', host, cluster, rounds: 10, keep: 1 });
  assert.equal(records.activeRequests(host), 3);
});

test('the memory grows while workers count, and they reach what is new', async () => {
  const owner = new SharedMemoryOwner({ workerCount: 2 });
  const workers = [startThread(owner, 0), startThread(owner, 1)];
  const first = owner.cells.allocate(CELLS_PER_SLAB);
  const counting = workers.map((worker) => worker.run({ do: 'count', block: first, cells: 8, rounds: 300_000 }));
  const startLength = owner.shared.byteLength;
  const younger: number[] = [];
  for (let n = 0; n < 100; n++) {
    younger.push(owner.cells.allocate(CELLS_PER_SLAB));
    await new Promise(setImmediate);
  }
  assert.ok(owner.shared.byteLength >= startLength + 100 * 3 * SLAB_SIZE);
  await Promise.all(counting);

  const last = younger.at(-1)!;
  const cluster = owner.recordAllocator.allocateCluster();
  const host = owner.recordAllocator.allocateHost(1);
  for (const worker of workers) {
    await worker.run({ do: 'count', block: last, cells: 2, rounds: 10 });
    await worker.run({ do: 'hammer-records', host, cluster, rounds: 1, keep: 1 });
  }
  for (const slab of [1, 2]) {
    assert.equal(owner.shared.f64[first + slab * CELLS_PER_SLAB], 300_000);
    assert.equal(owner.shared.f64[last + slab * CELLS_PER_SLAB + 1], 10);
  }
  assert.equal(owner.shared.records.activeRequests(host), 2);
});
