// From the profiles of V8, one for each thread, to one in pprof's format. Main thread.

import { type CallFrame, SourcePlaces } from './frames.ts';
import { PprofProfile } from './pprof.ts';

/** What a thread's engine has written, as JSON. */
export interface EngineProfile {
  readonly thread: string;
  readonly json: string;
}

/** When profiles were taken. */
export interface ProfiledTime {
  /** Since the Unix epoch. */
  readonly beganMs: number;
  readonly durationMs: number;
}

/** Of V8's own format; each node stands for a stack. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  /** Nodes by id. */
  readonly samples: readonly number[];
  /** Microseconds since the sample before. */
  readonly timeDeltas: readonly number[];
}

interface HeapNode {
  readonly id: number;
  readonly callFrame: CallFrame;
  readonly children: readonly HeapNode[];
}

interface HeapProfile {
  readonly head: HeapNode;
  /** What is still there, `size` bytes that were allocated by a node. */
  readonly samples: readonly { readonly nodeId: number; readonly size: number }[];
}

/** The engine's names for what is no time on a processor, and for the foot of all stacks. */
const IDLE = '(idle)';
const ROOT = '(root)';
const NS_PER_US = 1000;

export function cpuPprof(profiles: readonly EngineProfile[], time: ProfiledTime, periodNs: number): Promise<Buffer> {
  const pprof = new PprofProfile({
    ...time,
    valueTypes: [
      ['samples', 'count'],
      ['cpu', 'nanoseconds'],
    ],
    periodType: ['cpu', 'nanoseconds'],
    period: periodNs,
  });
  const places = new SourcePlaces();
  for (const { thread, json } of profiles) {
    const { nodes, samples, timeDeltas } = JSON.parse(json) as CpuProfile;
    const totals = new Totals();
    for (const [index, node] of samples.entries()) {
      totals.add(node, Math.max(0, timeDeltas[index] ?? 0) * NS_PER_US);
    }
    const byId = new Map(nodes.map((node) => [node.id, node]));
    const stacks = new Stacks(pprof, places);
    const visit = (id: number, outer: readonly number[]): void => {
      const { callFrame, children = [] } = byId.get(id)!;
      if (callFrame.functionName === IDLE) return;
      const stack = stacks.inner(callFrame, outer);
      totals.write(id, (count, sum) => pprof.add(thread, stack, [count, sum]));
      for (const child of children) visit(child, stack);
    };
    if (nodes[0] !== undefined) visit(nodes[0].id, []);
  }
  return pprof.finish();
}

export function heapPprof(
  profiles: readonly EngineProfile[],
  time: ProfiledTime,
  periodBytes: number,
): Promise<Buffer> {
  const pprof = new PprofProfile({ ...time, ...HEAP_VALUES, period: periodBytes });
  const places = new SourcePlaces();
  for (const { thread, json } of profiles) {
    const { head, samples } = JSON.parse(json) as HeapProfile;
    const totals = new Totals();
    for (const { nodeId, size } of samples) totals.add(nodeId, size);
    const stacks = new Stacks(pprof, places);
    const visit = ({ id, callFrame, children }: HeapNode, outer: readonly number[]): void => {
      const stack = stacks.inner(callFrame, outer);
      totals.write(id, (count, sum) => pprof.add(thread, stack, [count, sum]));
      for (const child of children) visit(child, stack);
    };
    visit(head, []);
  }
  return pprof.finish();
}

/** What profiles of heaps count. */
export const HEAP_VALUES = {
  valueTypes: [
    ['inuse_objects', 'count'],
    ['inuse_space', 'bytes'],
  ],
  periodType: ['space', 'bytes'],
} as const;

/** Samples of each node, and the sum of what they weigh. */
class Totals {
  readonly #byNode = new Map<number, [count: number, sum: number]>();

  add(node: number, weight: number): void {
    const total = this.#byNode.get(node);
    if (total === undefined) this.#byNode.set(node, [1, weight]);
    else {
      total[0] += 1;
      total[1] += weight;
    }
  }

  /** Calls nobody for a node without samples. */
  write(node: number, into: (count: number, sum: number) => void): void {
    const total = this.#byNode.get(node);
    if (total !== undefined) into(...total);
  }
}

class Stacks {
  readonly #pprof: PprofProfile;
  readonly #places: SourcePlaces;

  constructor(pprof: PprofProfile, places: SourcePlaces) {
    this.#pprof = pprof;
    this.#places = places;
  }

  /** The stack of a frame that `outer` has called. */
  inner(frame: CallFrame, outer: readonly number[]): readonly number[] {
    return frame.functionName === ROOT ? outer : [this.#pprof.location(this.#places.frame(frame)), ...outer];
  }
}
