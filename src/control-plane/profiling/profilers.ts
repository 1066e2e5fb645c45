// The profilers of the process: they run in the engines of all threads at once, and what they find goes into one file. Main
// thread.
//
//   off ──start──▶ on ──stop──▶ off, the file is written
//                  └──close──▶ off, for good
//
// Orders wait for one another. A thread that ends meanwhile takes its part with it; one that starts later is not looked at.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import { giveBackMemory } from '../../base/garbage.ts';
import type { Logger } from '../../log/index.ts';
import { cpuPprof, type EngineProfile, HEAP_VALUES, heapPprof, type ProfiledTime } from './engine-profiles.ts';
import { HeapSnapshotReader } from './heap-snapshot.ts';
import { PprofProfile } from './pprof.ts';
import { checkProfileFile, writeProfileFile } from './profile-file.ts';

export type ProfileKind = 'cpu' | 'heap';

/** A profiler at work in one thread. */
export interface RunningProfile {
  readonly thread: string;
  /** @returns V8's profile as JSON; undefined when the thread has ended. */
  stop(): Promise<string | undefined>;
  /** Instead of `stop`, when nobody wants the profile. */
  giveUp(): void;
}

/** A thread whose heap can be looked at. */
export interface ProfiledHeap {
  readonly thread: string;
  /** The engine's snapshot, in pieces; undefined when the thread has ended. The thread stands still meanwhile. */
  snapshot(): Promise<AsyncIterable<Buffer | string> | undefined>;
}

/** The engines of all threads. */
export interface Engines {
  /** In all threads that can. */
  startProfile(kind: ProfileKind, options: ProfileOptions): Promise<readonly RunningProfile[]>;
  heaps(): readonly ProfiledHeap[];
}

export interface ProfileOptions {
  /** Milliseconds between two looks at the processor, or bytes between two at allocations. */
  readonly sampleInterval: number;
  /** Stacks are cut to this, those of heaps. */
  readonly stackDepth: number;
  /** Samples beyond these are not kept, those of processors (I9). */
  readonly maxBufferSize: number;
}

export interface ProfilersDependencies {
  readonly engines: Engines;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where profiles go. */
  readonly path: string;
}

/** What an order came to; a text says what went wrong. */
export type ProfilerAnswer = 'done' | 'is-on' | 'is-off' | { readonly failure: string };

/** 200 times a second, for half an hour; and a look at each half MiB that is allocated. */
const CPU_INTERVAL_MS = 5;
const CPU_SAMPLES = 360_000;
const HEAP_INTERVAL_BYTES = 512 * 1024;
const STACK_DEPTH = 64;
const NS_PER_MS = 1_000_000;

interface Running {
  readonly profiles: readonly RunningProfile[];
  readonly beganMs: number;
  readonly beganMonotonicMs: number;
}

export class Profilers {
  readonly #deps: ProfilersDependencies;
  readonly #running = new Map<ProfileKind, Running>();
  #last: Promise<unknown> = Promise.resolve();
  #isDumping = false;
  #isClosed = false;

  constructor(deps: ProfilersDependencies) {
    this.#deps = deps;
  }

  start(kind: ProfileKind): Promise<ProfilerAnswer> {
    return this.#next(async () => {
      if (this.#running.has(kind)) return 'is-on';
      const { engines, clock, log, path } = this.#deps;
      await checkProfileFile(path);
      const profiles = await engines.startProfile(kind, {
        sampleInterval: kind === 'cpu' ? CPU_INTERVAL_MS : HEAP_INTERVAL_BYTES,
        stackDepth: STACK_DEPTH,
        maxBufferSize: CPU_SAMPLES,
      });
      if (this.#isClosed) {
        giveUp(profiles);
        return { failure: 'there is nobody any more who could stop it' };
      }
      this.#running.set(kind, { profiles, beganMs: clock.wallMs(), beganMonotonicMs: clock.monotonicMs() });
      log.info(`the ${kind} profiler runs in ${profiles.length} threads`);
      return 'done';
    });
  }

  /** It is off then in any case, and so it can be started again. */
  stop(kind: ProfileKind): Promise<ProfilerAnswer> {
    return this.#next(async () => {
      const running = this.#running.get(kind);
      if (running === undefined) return 'is-off';
      this.#running.delete(kind);
      const { clock, log, path } = this.#deps;
      const { profiles, beganMs, beganMonotonicMs } = running;
      const time: ProfiledTime = { beganMs, durationMs: clock.monotonicMs() - beganMonotonicMs };
      const found = await Promise.all(
        profiles.map(async (profile) => ({ thread: profile.thread, json: await profile.stop() })),
      );
      const whole = found.filter((profile): profile is EngineProfile => profile.json !== undefined);
      if (whole.length < found.length) log.warning(`the ${kind} profile lacks threads that have ended`);
      const bytes =
        kind === 'cpu'
          ? await cpuPprof(whole, time, CPU_INTERVAL_MS * NS_PER_MS)
          : await heapPprof(whole, time, HEAP_INTERVAL_BYTES);
      await writeProfileFile(path, bytes);
      log.info(`the ${kind} profile of ${whole.length} threads is in ${path}`);
      return 'done';
    });
  }

  /** What runs is given up: this thread may go on without the proxy. */
  close(): void {
    this.#isClosed = true;
    for (const { profiles } of this.#running.values()) giveUp(profiles);
    this.#running.clear();
  }

  /**
   * What is on the heaps of all threads now, in pprof's format; one thread after the other stands still for it.
   * @returns undefined while another dump is under way.
   */
  async dumpHeaps(): Promise<Buffer | undefined> {
    if (this.#isDumping) return undefined;
    this.#isDumping = true;
    try {
      const { engines, clock } = this.#deps;
      const pprof = new PprofProfile({ ...HEAP_VALUES, period: 1, beganMs: clock.wallMs(), durationMs: 0 });
      for (const heap of engines.heaps()) {
        await addHeap(pprof, heap);
        // A snapshot is gone only with the stream that it came by, and is several times as large as its heap.
        giveBackMemory();
      }
      return await pprof.finish();
    } finally {
      this.#isDumping = false;
    }
  }

  #next(order: () => Promise<ProfilerAnswer>): Promise<ProfilerAnswer> {
    const done = this.#last.then(order).catch((error: unknown) => {
      this.#deps.log.error(errorMessage(error));
      return { failure: errorMessage(error) };
    });
    this.#last = done;
    return done;
  }
}

function giveUp(profiles: readonly RunningProfile[]): void {
  for (const profile of profiles) profile.giveUp();
}

async function addHeap(pprof: PprofProfile, { thread, snapshot }: ProfiledHeap): Promise<void> {
  const pieces = await snapshot();
  if (pieces === undefined) return;
  const reader = new HeapSnapshotReader();
  for await (const piece of pieces) reader.push(typeof piece === 'string' ? Buffer.from(piece) : piece);
  // The thread has ended in the middle.
  if (!reader.isWhole) return;
  for (const { kind, name, count, bytes } of reader.classes()) {
    const stack = [name, kind].map((each) => pprof.location({ name: each, file: '', line: 0 }));
    pprof.add(thread, name === kind ? stack.slice(1) : stack, [count, bytes]);
  }
}
