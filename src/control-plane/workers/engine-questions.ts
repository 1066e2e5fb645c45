// What the engines of the workers are asked for (heaps, profiles, where they are at work), each within a bound: one that is stuck answers
// nothing. Main thread.

import type { HeapInfo } from 'node:v8';
import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { ProfiledHeap, ProfileKind, ProfileOptions, RunningProfile } from '../profiling/profilers.ts';
import { stackOf } from '../watchdog/stack.ts';
import type { Answers } from './answers.ts';
import type { WorkerThread } from './worker-thread.ts';

/** A profiler at work in one worker. */
interface WorkerProfile {
  stop(limitMs?: number): Promise<string | undefined>;
  giveUp(): void;
}

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
  readonly #faults: FaultBoundary;

  /** @param workers by index; undefined for one that is being restarted. */
  constructor(workers: readonly (WorkerThread | undefined)[], clock: Clock, faults: FaultBoundary) {
    this.#workers = workers;
    this.#clock = clock;
    this.#faults = faults;
  }

  /** The heap of each worker that answers soon; also of one that is busy, but not of one that ends meanwhile. */
  async heapStatistics(): Promise<HeapInfo[]> {
    const heaps = this.#workers.map((worker) => worker && this.#soon(worker.heapStatistics()));
    return (await Promise.all(heaps)).filter((heap) => heap !== undefined);
  }

  /** Has the engines of all workers take profiles. */
  async startProfile(kind: ProfileKind, options: ProfileOptions): Promise<RunningProfile[]> {
    const started = this.#workers.map(async (worker, index): Promise<RunningProfile | undefined> => {
      if (worker === undefined) return undefined;
      const running = await (kind === 'cpu' ? this.#startCpu(worker, options) : this.#startHeap(worker, options));
      return running && { thread: `worker_${index}`, ...running };
    });
    return (await Promise.all(started)).filter((profile) => profile !== undefined);
  }

  /** The heaps of all workers, to be looked at. */
  heaps(): ProfiledHeap[] {
    return this.#workers.flatMap((worker, index) => {
      if (worker === undefined) return [];
      return [{ thread: `worker_${index}`, snapshot: () => this.#snapshot(worker) }];
    });
  }

  /** Where a worker is at work, innermost first; undefined when it is nowhere, or does not say. */
  async whereIs(index: number): Promise<string | undefined> {
    const worker = this.#workers[index];
    const profile = worker && (await this.#startCpu(worker, STACK_PROFILE));
    if (profile === undefined) return undefined;
    await new Promise<void>((resolve) => this.#clock.after(STACK_PROFILE_MS, resolve));
    const json = await profile.stop(ANSWER_LIMIT_MS);
    return json === undefined ? undefined : stackOf(json);
  }

  async #startCpu(worker: WorkerThread, options: ProfileOptions): Promise<WorkerProfile | undefined> {
    const started = worker.startCpuProfile(options);
    const handle = await this.#soon(started);
    const end = (): Promise<unknown> => started.then((late) => late.stop()).catch(() => {});
    const giveUp = (): void => this.#faults.run('the end of a profile that nobody wants', end);
    if (handle !== undefined)
      return { stop: (limitMs = PROFILE_LIMIT_MS) => this.#soon(handle.stop(), limitMs), giveUp };
    // Nobody would ever stop one that begins after all.
    giveUp();
    return undefined;
  }

  async #startHeap(worker: WorkerThread, options: ProfileOptions): Promise<WorkerProfile | undefined> {
    const answers = worker.sampleHeap(options);
    const giveUp = (): void => answers.close();
    if ((await this.#soon(answers.next())) === undefined) {
      giveUp();
      return undefined;
    }
    const stop = (limitMs = PROFILE_LIMIT_MS): Promise<string | undefined> => {
      answers.send('stop');
      return this.#soon(answers.next(), limitMs).finally(giveUp);
    };
    return { stop, giveUp };
  }

  async #snapshot(worker: WorkerThread): Promise<AsyncIterable<string> | undefined> {
    const answers = worker.dumpHeap();
    if ((await this.#soon(answers.next())) !== undefined) return this.#pieces(answers);
    answers.close();
    return undefined;
  }

  async *#pieces(answers: Answers): AsyncGenerator<string> {
    try {
      for (;;) {
        const piece = await this.#soon(answers.next(), PROFILE_LIMIT_MS);
        if (piece === undefined) return;
        yield piece;
      }
    } finally {
      answers.close();
    }
  }

  /** Undefined for a question that fails, or is not answered. */
  #soon<Answer>(question: Promise<Answer>, limitMs = ANSWER_LIMIT_MS): Promise<Answer | undefined> {
    const late = Promise.withResolvers<undefined>();
    const cancel = this.#clock.after(limitMs, () => late.resolve(undefined));
    return Promise.race([question.catch(() => undefined), late.promise]).finally(cancel);
  }
}
