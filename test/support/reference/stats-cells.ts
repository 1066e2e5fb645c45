// Plain twin of assembly/stats/cells.ts: the same rules over arrays, one array per slab.

/** Totals of all slabs less the baseline; -0 only where every slab is untouched. */
export function sumCells(slabs: readonly (readonly number[])[], baseline: readonly number[]): number[] {
  return baseline.map((base, cell) => {
    const values = slabs.map((slab) => slab[cell]!);
    if (values.every((value) => Object.is(value, -0))) return -0;
    return values.reduce((sum, value) => sum + value, 0) - base + 0;
  });
}

/** What the baseline is after a reset. */
export function resetCells(slabs: readonly (readonly number[])[]): number[] {
  return sumCells(
    slabs,
    slabs[0]!.map(() => 0),
  );
}

/** Gauges of a worker that is gone. */
export function zeroTouchedCells(slab: readonly number[]): number[] {
  return slab.map((value) => (Object.is(value, -0) ? -0 : 0));
}
