// What the engines of the workers are asked for (heaps, profiles, where they are at work), each within a bound: one that is stuck answers
// nothing. Main thread.

import type { HeapInfo } from 'node:v8';
import type { Clock } from '../../base/clock.ts';
import type { ProfiledHeap, ProfileKind, ProfileOptions, RunningProfile } from '../profiling/profilers.ts';
import { stackOf } from '../watchdog/stack.ts';
import type { WorkerThread } from './worker-thread.ts';

/** What tells where a thread is. */
const STACK_PROFILE: ProfileOptions = { sampleInterval: 1, stackDepth: 64, maxBufferSize: 1000 };
const STACK_PROFILE_MS = 50;
/** What is asked of a thread's engine is answered within this, or never. */
const ANSWER_LIMIT_MS = 2_000;
/** The same of profiles and snapshots, which take long on large heaps. */
const PROFILE_LIMIT_MS = 120_000;

export class EngineQuestions {
  readonly #workers: readonly (WorkerThread | undefined)[];
  readonly #clock: Clock;

  /** @param workers by index; undefined for one that is being restarted. */
  constructor(workers: readonly (WorkerThread | undefined)[], clock: Clock) {
    this.#workers = workers;
    this.#clock = clock;
  }

  /** The heap of each worker that answers soon; also of one that is busy, but not of one that ends meanwhile. */
  async heapStatistics(): Promise<HeapInfo[]> {
    const heaps = this.#workers.map((worker) => worker && this.#soon(worker.heapStatistics()));
    return (await Promise.all(heaps)).filter((heap) => heap !== undefined);
  }

  /** Has the engines of all workers take profiles. */
  async startProfile(kind: ProfileKind, options: ProfileOptions): Promise<RunningProfile[]> {
    const started = this.#workers.map(async (worker, index): Promise<RunningProfile | undefined> => {
      const handle = worker && (await this.#soon(worker.startProfile(kind, options)));
      if (handle === undefined) return undefined;
      const stop = (): Promise<string | undefined> => this.#soon<string>(handle.stop(), PROFILE_LIMIT_MS);
      return { thread: `worker_${index}`, stop };
    });
    return (await Promise.all(started)).filter((profile) => profile !== undefined);
  }

  /** The heaps of all workers, to be looked at. */
  heaps(): ProfiledHeap[] {
    return this.#workers.flatMap((worker, index) => {
      if (worker === undefined) return [];
      return [{ thread: `worker_${index}`, snapshot: () => this.#soon(worker.heapSnapshot(), PROFILE_LIMIT_MS) }];
    });
  }

  /** Where a worker is at work, innermost first; undefined when it is nowhere, or does not say. */
  async whereIs(index: number): Promise<string | undefined> {
    const worker = this.#workers[index];
    const handle = worker && (await this.#soon(worker.startProfile('cpu', STACK_PROFILE)));
    if (handle === undefined) return undefined;
    await new Promise<void>((resolve) => this.#clock.after(STACK_PROFILE_MS, resolve));
    const json = await this.#soon<string>(handle.stop());
    return json === undefined ? undefined : stackOf(json);
  }

  /** Undefined for a question that fails, or is not answered. */
  #soon<Answer>(question: Promise<Answer>, limitMs = ANSWER_LIMIT_MS): Promise<Answer | undefined> {
    const late = Promise.withResolvers<undefined>();
    const cancel = this.#clock.after(limitMs, () => late.resolve(undefined));
    return Promise.race([question.catch(() => undefined), late.promise]).finally(cancel);
  }
}
