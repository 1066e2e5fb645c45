import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { memoryReport } from '../../../../src/control-plane/server/memory-report.ts';

describe('the report of memory', () => {
  const bytes = fc.nat({ max: 2 ** 40 });
  const anyHeap = fc.record({
    used_heap_size: bytes,
    total_heap_size: bytes,
    total_physical_size: bytes,
    external_memory: bytes,
    malloced_memory: bytes,
  });
  const anyShared = fc.tuple(bytes, bytes).map(([a, b]) => ({ usedBytes: Math.min(a, b), byteLength: Math.max(a, b) }));

  it('divides what is reserved into what is used, free, not mapped and kept in caches', () => {
    const heaps = fc.array(
      anyHeap.map((heap) => ({ ...heap, total_heap_size: heap.total_heap_size + heap.used_heap_size })),
    );
    fc.assert(
      fc.property(heaps, anyShared, (all, shared) => {
        const { allocated, heap, unmapped, free, threadCaches, physical } = memoryReport(all, shared, 7);
        assert.equal(allocated + unmapped + free + threadCaches, heap);
        assert.ok(Math.min(allocated, unmapped, free, threadCaches) >= 0);
        assert.equal(physical, 7);
      }),
    );
  });

  it('adds the heaps of all threads to what they share', () => {
    const heap = {
      used_heap_size: 50,
      total_heap_size: 100,
      total_physical_size: 80,
      external_memory: 7,
      malloced_memory: 3,
    };
    assert.deepEqual(memoryReport([heap, heap], { usedBytes: 1000, byteLength: 4000 }, 9), {
      allocated: 2 * 57 + 1000,
      heap: 2 * 110 + 4000,
      unmapped: 2 * 20,
      free: 2 * 30 + 3000,
      threadCaches: 2 * 3,
      physical: 9,
    });
  });
});
