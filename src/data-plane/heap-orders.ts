// What main wants to know of this worker's heap. The answers go to a port of the order, and the order is over when either side closes it:
// main's when nobody wants the answer any more, this one when the thread ends. Worker threads.

import type { MessagePort } from 'node:worker_threads';
import { giveBackMemory } from '../base/garbage.ts';
import { dumpHeap, HeapSampling, type HeapSamplingOptions } from '../base/own-heap.ts';

/**
 * Says that it samples, and the profile when it is told to stop.
 * @throws Error when there is a sampling already; the port is closed then.
 */
export function sampleHeapFor(port: MessagePort, options: HeapSamplingOptions): void {
  try {
    const sampling = new HeapSampling(options);
    port.on('message', () => {
      port.postMessage(sampling.stop());
      port.close();
    });
    port.on('close', () => sampling.end());
    port.postMessage('sampling');
  } catch (error) {
    port.close();
    throw error;
  }
}

/** Says that it begins, and the pieces of the snapshot. */
export async function dumpHeapFor(port: MessagePort): Promise<void> {
  try {
    port.postMessage('begun');
    await dumpHeap((piece) => port.postMessage(piece));
  } finally {
    port.close();
    giveBackMemory();
  }
}
