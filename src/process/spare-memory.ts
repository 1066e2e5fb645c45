// Gives back to the system what the C library's allocator keeps and nobody has used for a while: the memory of compilers that
// have done their work, and what connections have left. By itself the allocator gives back no more than the ends of its
// areas, and a piece in use at the end keeps all the others. Main thread; for the program alone, since the allocator is the
// whole process's (docs/decisions/0084-spare-memory-goes-back.md).
//
//   what was taken since the last time, or left by connections, is worth it ──it grows no more──► trim
//
// A trim takes 4 to 25 ms of this thread, in which workers that allocate may have to wait, and a process that takes again what it
// has given back pays for each page twice. So one that follows soon doubles how long the next has to wait.

import type { Clock } from '../base/clock.ts';

const LOOK_MS = 1_000;
const MEBIBYTE = 1024 * 1024;
/** Less than that is not worth a trim. */
const WORTH_BYTES = 16 * MEBIBYTE;
/** What so many connections have left comes to that, at least. */
const WORTH_CONNECTIONS = 1_000;
/** Between two looks: it does not grow. */
const CALM_BYTES = MEBIBYTE;
const LEAST_WAIT_MS = 2_000;
const MOST_WAIT_MS = 600_000;
/** What comes no later than so many waits behind the last trim has been taken again. */
const SOON_WAITS = 4;

export interface SpareMemoryParts {
  readonly clock: Clock;
  /** Bytes of the process in physical memory. */
  readonly residentBytes: () => number;
  /** Open connections of clients. */
  readonly connections: () => number;
  /** @returns whether it can be asked for at all. */
  readonly trim: () => boolean;
  /** It has been done. */
  readonly onGivenBack: (bytes: number) => void;
}

export class SpareMemory {
  readonly #parts: SpareMemoryParts;
  /** As little as there has been since the last trim. */
  #leastBytes: number;
  #lastBytes: number;
  /** As many as there have been since the last trim. */
  #mostConnections: number;
  #waitMs = LEAST_WAIT_MS;
  #trimmedMs = Number.NEGATIVE_INFINITY;
  #cancel: () => void;

  constructor(parts: SpareMemoryParts) {
    this.#parts = parts;
    this.#leastBytes = parts.residentBytes();
    this.#lastBytes = this.#leastBytes;
    this.#mostConnections = parts.connections();
    this.#cancel = this.#wait();
  }

  stop(): void {
    this.#cancel();
  }

  #wait(): () => void {
    return this.#parts.clock.after(LOOK_MS, () => {
      if (this.#look()) this.#cancel = this.#wait();
    });
  }

  /** @returns whether to look again. */
  #look(): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    const bytes = this.#parts.residentBytes();
    const connections = this.#parts.connections();
    const isCalm = Math.abs(bytes - this.#lastBytes) <= CALM_BYTES;
    this.#lastBytes = bytes;
    this.#leastBytes = Math.min(this.#leastBytes, bytes);
    this.#mostConnections = Math.max(this.#mostConnections, connections);
    const isWorthIt =
      bytes - this.#leastBytes >= WORTH_BYTES || this.#mostConnections - connections >= WORTH_CONNECTIONS;
    return !isWorthIt || !isCalm || nowMs - this.#trimmedMs < this.#waitMs || this.#trim(nowMs, bytes, connections);
  }

  #trim(nowMs: number, bytes: number, connections: number): boolean {
    if (!this.#parts.trim()) return false;
    const isSoon = nowMs - this.#trimmedMs < SOON_WAITS * this.#waitMs;
    this.#waitMs = isSoon ? Math.min(2 * this.#waitMs, MOST_WAIT_MS) : LEAST_WAIT_MS;
    this.#trimmedMs = nowMs;
    this.#leastBytes = this.#parts.residentBytes();
    this.#lastBytes = this.#leastBytes;
    this.#mostConnections = connections;
    this.#parts.onGivenBack(Math.max(0, bytes - this.#leastBytes));
    return true;
  }
}
