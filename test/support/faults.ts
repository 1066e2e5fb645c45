// Where the faults of callbacks on main end in tests that expect none: each fails its test.

import { FaultBoundary } from '../../src/base/fault-boundary.ts';

export const NO_FAULTS = new FaultBoundary((where, error) => {
  queueMicrotask(() => {
    throw new Error(`fault in ${where}`, { cause: error });
  });
});

/** For tests that expect some: they are noted, and cost nothing else. */
export function notedFaults(): { readonly faults: FaultBoundary; readonly reports: string[] } {
  const reports: string[] = [];
  return { faults: new FaultBoundary((where, error) => reports.push(`${where}: ${String(error)}`)), reports };
}
