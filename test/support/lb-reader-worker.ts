// A worker thread that reads hash tables and picks hosts while the test's thread builds others, one command at a time.

import { type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads';
import { HashRing, LbKernel, MaglevTable, openPicker, type PickPlan } from '../../src/wasm/lb.ts';
import { SharedMemory } from '../../src/wasm/shared-memory.ts';

export type ReaderCommand =
  /** Looks up so many hashes and keys; answers a sum that depends on every one. */
  | { readonly do: 'read'; readonly kind: 'maglev' | 'ring'; readonly address: number; readonly lookups: number }
  /** Picks so often, taking a request on each and ending it; answers the picks of each host. */
  | { readonly do: 'pick'; readonly plan: PickPlan; readonly records: readonly number[]; readonly picks: number };

interface StartData {
  readonly memory: WebAssembly.Memory;
  readonly lbModule: WebAssembly.Module;
  readonly workerIndex: number;
}

/** The test's handle of one such thread. */
export class LbReader {
  readonly #worker: Worker;

  constructor(memory: WebAssembly.Memory, lbModule: WebAssembly.Module, workerIndex: number) {
    const workerData: StartData = { memory, lbModule, workerIndex };
    this.#worker = new Worker(new URL(import.meta.url), { workerData });
  }

  run(command: ReaderCommand & { do: 'read' }): Promise<number>;
  run(command: ReaderCommand & { do: 'pick' }): Promise<number[]>;
  run(command: ReaderCommand): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void): void => {
        this.#worker.off('message', onMessage).off('error', onError);
        finish();
      };
      const onMessage = (answer: unknown): void => settle(() => resolve(answer));
      const onError = (error: unknown): void => settle(() => reject(error));
      this.#worker.on('message', onMessage).on('error', onError);
      this.#worker.postMessage(command);
    });
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** What a reader answers for a table, whichever thread reads it. */
export function readTable(kernel: LbKernel, { kind, address, lookups }: ReaderCommand & { do: 'read' }): number {
  const table = kind === 'maglev' ? new MaglevTable(kernel, address) : new HashRing(kernel, address);
  let sum = 0;
  for (let n = 0; n < lookups; n += 1) {
    const host = table.lookup(Math.imul(n, 0x9e3779b1) >>> 0, Math.imul(n, 0x85ebca6b) >>> 0, n % 3);
    sum = (Math.imul(sum, 31) + host + table.hashAndLookup(`user-${n % 1000}`)) | 0;
  }
  return sum;
}

function pick(kernel: LbKernel, { plan, records, picks }: ReaderCommand & { do: 'pick' }): number[] {
  const picker = openPicker(kernel, plan, kernel.shared.slab);
  const counts = new Array<number>(plan.hostCount).fill(0);
  for (let n = 0; n < picks; n += 1) {
    const host = picker.pick();
    counts[host]! += 1;
    kernel.shared.records.addActiveRequests(records[host]!, 1);
    if (n >= 4) kernel.shared.records.addActiveRequests(records[host]!, -1);
  }
  return counts;
}

function serve(main: MessagePort, { memory, lbModule, workerIndex }: StartData): void {
  const kernel = new LbKernel(SharedMemory.attach(memory, workerIndex), lbModule);
  main.on('message', (command: ReaderCommand) => {
    main.postMessage(command.do === 'read' ? readTable(kernel, command) : pick(kernel, command));
  });
}

const isStarted = (workerData as StartData | null)?.lbModule !== undefined;
if (parentPort && isStarted) serve(parentPort, workerData as StartData);
