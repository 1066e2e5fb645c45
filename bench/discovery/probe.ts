// Rides along in the main thread of a proxy that is measured (`node --import`): tells over the channel to its parent what that
// thread has cost and for how long it was at work in one turn of its event loop. Processor time, so that neighbours count little.

import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { PerformanceObserver, performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

/** Since the last `reset`, but for memory, which is that of the moment. */
export interface ProbeFigures {
  readonly cpuMs: number;
  /** The longest turn: its processor time, and what a clock on the wall says of the longest (another one, perhaps). */
  readonly longestCpuMs: number;
  readonly longestWallMs: number;
  /** Turns above 20 ms of processor time. */
  readonly longTurns: number;
  /** The longest pause of the collector. */
  readonly longestPauseMs: number;
  readonly heapMegabytes: number;
  readonly externalMegabytes: number;
}

/** `collect`: what nobody refers to any more is taken off the heap first. */
export type ProbeOrder = 'reset' | 'read' | 'collect' | 'profile' | { readonly saveProfileTo: string };

const LONG_MS = 20;
const US_PER_MS = 1000;
const MEGABYTE = 1e6;

function collect(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

function cpuMsNow(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / US_PER_MS;
}

function ride(send: (figures: ProbeFigures | null) => void): void {
  let beganCpuMs = cpuMsNow();
  let [turnCpuMs, turnWallMs, turnIdleMs] = [beganCpuMs, performance.now(), performance.nodeTiming.idleTime];
  let [longestCpuMs, longestWallMs, longTurns, longestPauseMs] = [0, 0, 0, 0];
  const turn = (): void => {
    const [cpuMs, wallMs, idleMs] = [cpuMsNow(), performance.now(), performance.nodeTiming.idleTime];
    longestCpuMs = Math.max(longestCpuMs, cpuMs - turnCpuMs);
    longestWallMs = Math.max(longestWallMs, wallMs - turnWallMs - (idleMs - turnIdleMs));
    if (cpuMs - turnCpuMs > LONG_MS) longTurns += 1;
    [turnCpuMs, turnWallMs, turnIdleMs] = [cpuMs, wallMs, idleMs];
    // Runs behind the events of a turn, and wakes nobody up.
    setImmediate(turn).unref();
  };
  turn();
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestPauseMs = Math.max(longestPauseMs, duration);
  }).observe({ entryTypes: ['gc'] });
  const read = (): ProbeFigures => {
    const { heapUsed, external } = process.memoryUsage();
    const [heapMegabytes, externalMegabytes] = [heapUsed / MEGABYTE, external / MEGABYTE];
    const cpuMs = cpuMsNow() - beganCpuMs;
    return { cpuMs, longestCpuMs, longestWallMs, longTurns, longestPauseMs, heapMegabytes, externalMegabytes };
  };
  const session = new Session();
  process.on('message', (order: ProbeOrder) => {
    if (order === 'read') send(read());
    else if (order === 'collect') {
      collect();
      send(null);
    } else if (order === 'reset') {
      beganCpuMs = cpuMsNow();
      turnCpuMs = beganCpuMs;
      [longestCpuMs, longestWallMs, longTurns, longestPauseMs] = [0, 0, 0, 0];
      send(null);
    } else if (order === 'profile') {
      session.connect();
      session.post('Profiler.enable');
      session.post('Profiler.start', () => send(null));
    } else {
      session.post('Profiler.stop', (_error, { profile }) => {
        writeFileSync(order.saveProfileTo, JSON.stringify(profile));
        session.disconnect();
        send(null);
      });
    }
  });
  // The proxy ends when it has nothing to do.
  process.channel?.unref();
}

if (isMainThread && process.send !== undefined) ride((figures) => process.send!(figures));
