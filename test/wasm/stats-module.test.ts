import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { CELLS_PER_SLAB, LAYOUT_VERSION } from '../../assembly/layout/shared-memory.ts';
import { WeirError } from '../../src/base/errors.ts';
import { buildOutput } from '../../src/base/package-root.ts';
import { compileModule, instantiateModule } from '../../src/wasm/instantiate.ts';
import { SharedMemoryOwner } from '../../src/wasm/shared-memory-owner.ts';
import { StatsKernel } from '../../src/wasm/stats.ts';
import type { StatsExports } from '../../src/wasm/stats-exports.ts';
import * as reference from '../support/reference/stats-cells.ts';
import { readWasm } from '../support/wasm-binary.ts';

const module = compileModule('stats');

test('the stats module owns nothing that threads could overwrite for each other', () => {
  const binary = readWasm(readFileSync(buildOutput('wasm/stats.wasm')));
  assert.equal(binary.hasDataSection, false);
  assert.equal(binary.mutableGlobals, 0);
  assert.deepEqual(binary.imports, ['env.memory']);
});

test('the stats module exports exactly what its facade declares, without 64-bit integers', () => {
  // Typed by the facade's interface: a name that is missing there does not compile.
  const declared: Record<keyof StatsExports, string> = {
    layoutVersion: '() -> i32',
    sumCells: '(i32, i32, i32, i32) -> ',
    resetCells: '(i32, i32, i32) -> ',
    zeroTouchedCells: '(i32, i32) -> ',
    record: '(i32, f64, i32) -> i32',
    recordMany: '(i32, i32, i32, i32) -> i32',
    recordManyIntegers: '(i32, i32, i32, i32) -> i32',
    mergeHistogram: '(i32, i32, i32) -> i32',
    totalCount: '(i32, i32) -> f64',
    quantiles: '(i32, i32, i32, i32, i32) -> ',
    bucketCounts: '(i32, i32, i32, i32, i32) -> ',
    sampleSum: '(i32, i32) -> f64',
  };
  const { exports } = readWasm(readFileSync(buildOutput('wasm/stats.wasm')));
  assert.deepEqual({ ...exports }, declared);
});

test('a module of another layout is refused at start', () => {
  const { memory } = new SharedMemoryOwner({ workerCount: 1 });
  assert.throws(
    () => instantiateModule('stats', module, memory, LAYOUT_VERSION + 1),
    (error) =>
      error instanceof WeirError && error.code === 'WEIR_WASM_LAYOUT' && /build the WASM modules/.test(error.message),
  );
});

test('a module that was never built is named in the error', () => {
  assert.throws(
    () => compileModule('nowhere' as 'stats'),
    (error) =>
      error instanceof WeirError && error.code === 'WEIR_WASM_MISSING' && error.message.includes('nowhere.wasm'),
  );
});

// Whole numbers, as counters hold them; -0 stands for a cell that was never touched.
const cellValue = fc.oneof(fc.constant(-0), fc.constant(0), fc.integer({ min: -1000, max: 2 ** 40 }));

test('sums, resets and clears equal those of the plain twin for any cells and any number of slabs', () => {
  const scenario = fc
    .record({ slabCount: fc.integer({ min: 2, max: 6 }), count: fc.integer({ min: 1, max: 9 }) })
    .chain(({ slabCount, count }) =>
      fc.record({
        slabs: fc.array(fc.array(cellValue, { minLength: count, maxLength: count }), {
          minLength: slabCount,
          maxLength: slabCount,
        }),
        resetFirst: fc.boolean(),
        added: fc.integer({ min: 0, max: 1000 }),
      }),
    );
  fc.assert(
    fc.property(scenario, ({ slabs, resetFirst, added }) => {
      const count = slabs[0]!.length;
      const owner = new SharedMemoryOwner({ workerCount: slabs.length - 1, maxBytes: 16 * 1024 * 1024 });
      const kernel = new StatsKernel(owner, module);
      const cell = owner.cells.allocate(count);
      const write = (): void => {
        for (const [at, slab] of slabs.entries()) owner.shared.f64.set(slab, cell + at * CELLS_PER_SLAB);
      };
      write();
      let baseline = slabs[0]!.map(() => 0);
      if (resetFirst) {
        kernel.reset(cell, count);
        baseline = reference.resetCells(slabs);
        slabs[1]![0]! += added;
        write();
      }
      const expected = reference.sumCells(slabs, baseline);
      assert.deepEqual([...kernel.sum(cell, count)], expected);
      assert.deepEqual(
        expected.map((_, at) => kernel.total(cell + at)),
        expected,
      );
      kernel.zeroSlab(cell, count, 1);
      const cleared = [...owner.shared.f64.subarray(cell + CELLS_PER_SLAB, cell + CELLS_PER_SLAB + count)];
      assert.deepEqual(cleared, reference.zeroTouchedCells(slabs[1]!));
    }),
    { numRuns: 150 },
  );
});

test('a stretch that leaves its slab is refused by the facade', () => {
  const owner = new SharedMemoryOwner({ workerCount: 1 });
  const kernel = new StatsKernel(owner, module);
  assert.throws(() => kernel.sum(0, 1), /no stretch of a slab/);
  assert.throws(() => kernel.sum(owner.cells.allocate(1), CELLS_PER_SLAB + 1), /no stretch of a slab/);
});
