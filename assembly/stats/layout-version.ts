import { LAYOUT_VERSION } from '../layout/shared-memory';

/** Compared by the facade at start, so that a stale binary cannot run. */
export function layoutVersion(): u32 {
  return LAYOUT_VERSION;
}
