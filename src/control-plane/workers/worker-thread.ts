// One data-plane thread as the main thread sees it.
//
//   starting ──init, ready──▶ running ──shutdown──▶ stopping ──exit──▶ ended
//       └────────────────────────┴───────(crash)────────────────────▶ ended

import type { EventLoopUtilization } from 'node:perf_hooks';
import type { CPUProfileHandle, HeapInfo } from 'node:v8';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { stackFrames } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { threadEntry } from '../../base/package-root.ts';
import { RelayReceiver } from '../../log/index.ts';
import type { MainToWorker, WorkerToMain } from '../../snapshot/index.ts';
import type { ProfileOptions } from '../profiling/profilers.ts';
import { Answers } from './answers.ts';

type WorkerState = 'starting' | 'running' | 'stopping' | 'ended';

export interface WorkerEvents {
  readonly onMessage: (worker: WorkerThread, message: WorkerToMain) => void;
  /** The thread is gone; `reason` is empty when it was told to stop, `stack` but for an exception. */
  readonly onEnd: (worker: WorkerThread, reason: string, stack: string) => void;
}

export class WorkerThread {
  readonly index: number;
  /** Bounds the log records that are on their way from this thread. */
  readonly logRelay = new RelayReceiver((message) => this.send(message));
  readonly #thread: Worker;
  readonly #events: WorkerEvents;
  #state: WorkerState = 'starting';
  #loopUse: EventLoopUtilization | undefined;
  #crashReason = '';
  #crashStack = '';

  /**
   * Starts the thread, which loads its code and then waits for `init`.
   * @param flags of Node; those of the process when undefined.
   */
  constructor(index: number, events: WorkerEvents, faults: FaultBoundary, flags?: readonly string[]) {
    this.index = index;
    this.#events = events;
    const execArgv = flags === undefined ? {} : { execArgv: [...flags] };
    this.#thread = new Worker(threadEntry('worker.ts'), { name: `worker_${index}`, ...execArgv });
    const nameOf = ({ type }: WorkerToMain): string => `message '${type}' of worker ${index}`;
    const onMessage = (message: WorkerToMain): void => this.#receive(message);
    const onError = (error: unknown): void => {
      this.#crashReason = String(error);
      this.#crashStack = stackFrames(error);
    };
    const onExit = (code: number): void => this.#end(code);
    this.#thread.on('message', faults.handler(nameOf, onMessage));
    this.#thread.on('error', faults.handler(`the failure of worker ${index}`, onError));
    this.#thread.on('exit', faults.handler(`the end of worker ${index}`, onExit));
  }

  get threadId(): number {
    return this.#thread.threadId;
  }

  /** Share of its time that it has been at work since this was asked last. */
  takeEventLoopUse(): number {
    const { eventLoopUtilization } = this.#thread.performance;
    const now = eventLoopUtilization();
    const { utilization } = eventLoopUtilization(now, this.#loopUse);
    this.#loopUse = now;
    return Math.max(0, utilization);
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  send(message: MainToWorker): void {
    if (message.type === 'shutdown') this.#state = 'stopping';
    this.#thread.postMessage(message);
  }

  /** Of its engine. Never settles when the thread ends meanwhile. */
  heapStatistics(): Promise<HeapInfo> {
    return this.#thread.getHeapStatistics();
  }

  /** Of its engine, also when it is busy. Never settles when the thread ends meanwhile, as what the handle promises. */
  startCpuProfile(options: ProfileOptions): Promise<CPUProfileHandle> {
    return this.#thread.startCpuProfile(options);
  }

  /** Answers when it has begun, and to `stop` by the profile. Closed, it is over. */
  sampleHeap(options: ProfileOptions): Answers {
    return this.#ask((port) => ({ type: 'sample-heap', port, options }));
  }

  /** Answers when it begins, and by the pieces of a snapshot, for which the thread stands still. */
  dumpHeap(): Answers {
    return this.#ask((port) => ({ type: 'dump-heap', port }));
  }

  /** Ends a thread that does nothing any more, as if it had crashed. Resolves when it is gone. */
  async endStuck(reason: string): Promise<void> {
    this.#crashReason = reason;
    await this.#thread.terminate();
  }

  /** Ends the thread at once, whatever it is doing. */
  async terminate(): Promise<void> {
    if (this.#state !== 'ended') this.#state = 'stopping';
    await this.#thread.terminate();
  }

  #ask(order: (port: MessagePort) => MainToWorker): Answers {
    const { port1, port2 } = new MessageChannel();
    this.#thread.postMessage(order(port2), [port2]);
    // Of a thread that has ended, nobody has taken it.
    if (this.#state === 'ended') port2.close();
    return new Answers(port1);
  }

  #receive(message: WorkerToMain): void {
    if (message.type === 'ready' && this.#state === 'starting') this.#state = 'running';
    this.#events.onMessage(this, message);
  }

  #end(code: number): void {
    const wasStopping = this.#state === 'stopping';
    this.#state = 'ended';
    this.#events.onEnd(this, wasStopping ? '' : this.#crashReason || `exit code ${code}`, this.#crashStack);
  }
}
