// Where a thread is, out of a profile of a moment. Main thread. The profiler knows only functions that have been called since it
// began: a loop that calls nothing is not among them, but its callers are.

import type { CpuProfile } from '../profiling/engine-profiles.ts';
import { SourcePlaces } from '../profiling/frames.ts';

/** No places in a program. */
const FEET = new Set(['(root)', '(program)', '(idle)', '(garbage collector)']);

/** @param json of V8. @returns the stack that most samples fell on, innermost first; undefined when there is none. */
export function stackOf(json: string): string | undefined {
  const { nodes, samples } = JSON.parse(json) as CpuProfile;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const counts = new Map<number, number>();
  for (const id of samples) {
    if (!FEET.has(byId.get(id)!.callFrame.functionName)) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  const busiest = [...counts].sort((a, b) => b[1] - a[1])[0];
  if (busiest === undefined) return undefined;
  const places = new SourcePlaces();
  const frames: string[] = [];
  for (let id: number | undefined = busiest[0]; id !== undefined; id = parents.get(id)) {
    const { callFrame } = byId.get(id)!;
    if (FEET.has(callFrame.functionName)) continue;
    const { name, file, line } = places.frame(callFrame);
    frames.push(`    at ${name} (${file}:${line})`);
  }
  return frames.join('\n');
}
