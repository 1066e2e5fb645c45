// The one timer of a worker. Connections keep a deadline in their entry and move it freely: pushing a deadline
// back, or clearing it, is one store. Only an earlier deadline relinks the entry; a stale slot is found out when
// the wheel passes it. So a request that arms and clears four timeouts costs a few stores, no timer objects.
//
//   slots:  [0] [1] [2] … [SLOTS-1]          slot = tick & (SLOTS-1), tick = floor(ms / TICK_MS)
//            |        cursor: last tick that was run; entries further than one turn wait in the last
//            entry <-> entry                 reachable slot and are moved on when the wheel gets there
//
// Timeouts fire up to one tick late, never early.

import type { Clock } from '../../base/clock.ts';

export const TICK_MS = 8;
const SLOTS = 2048;
const SLOT_MASK = SLOTS - 1;
const NEVER = Number.POSITIVE_INFINITY;
/** In the place of the next wake's tick while slots are run, and after the end; earlier than any: none is scheduled. */
const NO_WAKE = 0;

/** Entries that are kept for the next who want one. */
const MAX_SPARE = 1024;

/** What happens when the deadline of an entry has passed. */
export interface TimeoutOwner {
  /** May set a new deadline. */
  onTimeout(nowMs: number): void;
}

/** One owner's place in the wheel; lives as long as the owner, or is lent to one after the other. */
export class TimerEntry {
  /** Monotonic milliseconds, infinite when nothing is awaited. */
  deadlineMs: number = NEVER;
  /** Tick of the slot that holds the entry, -1 when in none. */
  tick: number = -1;
  previous: TimerEntry | null = null;
  next: TimerEntry | null = null;
  owner: TimeoutOwner;

  constructor(owner: TimeoutOwner) {
    this.owner = owner;
  }
}

const NOBODY: TimeoutOwner = { onTimeout() {} };

export class TimerWheel {
  readonly #clock: Clock;
  readonly #onFault: (error: unknown) => void;
  readonly #slots: (TimerEntry | null)[] = new Array<TimerEntry | null>(SLOTS).fill(null);
  #cursor: number;
  readonly #spare: TimerEntry[] = [];
  #count = 0;
  #wakeTick = -1;
  #cancelWake: (() => void) | null = null;
  readonly #wake = (): void => this.#onWake();

  /** @param onFault told of what an owner has thrown, which is a bug; the other owners get their turn. */
  constructor(clock: Clock, onFault: (error: unknown) => void) {
    this.#clock = clock;
    this.#onFault = onFault;
    this.#cursor = Math.floor(clock.monotonicMs() / TICK_MS);
  }

  /** Entries that hold a slot, stale ones included. */
  get size(): number {
    return this.#count;
  }

  /** Sets the deadline; hot, and free of list work unless it comes before the slot that the entry already holds. */
  arm(entry: TimerEntry, deadlineMs: number): void {
    entry.deadlineMs = deadlineMs;
    if (deadlineMs === NEVER || (entry.tick !== -1 && deadlineMs > (entry.tick - 1) * TICK_MS)) return;
    this.#unlink(entry);
    this.#link(entry);
  }

  /** Forgets the deadline; the entry may stay in its slot until the wheel passes it. */
  disarm(entry: TimerEntry): void {
    entry.deadlineMs = NEVER;
  }

  /** Takes the entry out, so that the wheel no longer keeps its owner alive. */
  remove(entry: TimerEntry): void {
    entry.deadlineMs = NEVER;
    this.#unlink(entry);
  }

  /**
   * An entry for an owner that does not live long, and mostly ends before its deadline. It may still be in the slot of an
   * owner before: as long as deadlines come later with each owner, nothing is made and nothing linked.
   */
  lend(owner: TimeoutOwner): TimerEntry {
    const entry = this.#spare.pop();
    if (entry === undefined) return new TimerEntry(owner);
    entry.owner = owner;
    return entry;
  }

  /** The end of what was lent: its owner is not told of anything, and has to forget the entry. */
  takeBack(entry: TimerEntry): void {
    entry.deadlineMs = NEVER;
    entry.owner = NOBODY;
    if (this.#spare.length < MAX_SPARE) this.#spare.push(entry);
    else this.#unlink(entry);
  }

  /** Runs everything that is due at `nowMs`. Called by the wheel itself, and by tests. */
  advance(nowMs: number): void {
    const target = Math.floor(nowMs / TICK_MS);
    // After a long stop of the thread one turn visits every slot; more would visit them again.
    let tick = Math.max(this.#cursor + 1, target - SLOTS + 1);
    for (; tick <= target; tick++) {
      this.#cursor = tick;
      this.#runSlot(tick & SLOT_MASK, nowMs);
    }
  }

  /** Nobody is told of anything any more. */
  close(): void {
    this.#cancelWake?.();
    this.#wakeTick = NO_WAKE;
  }

  #runSlot(slot: number, nowMs: number): void {
    // Always the head: owners arm and remove entries meanwhile, and none of them can come back to this slot,
    // because links go to later ticks than the cursor and less than one turn ahead.
    for (let entry = this.#slots[slot] ?? null; entry !== null; entry = this.#slots[slot] ?? null) {
      this.#unlink(entry);
      if (entry.deadlineMs <= nowMs) {
        entry.deadlineMs = NEVER;
        this.#tell(entry.owner, nowMs);
      } else if (entry.deadlineMs !== NEVER) {
        this.#link(entry);
      }
    }
  }

  #tell(owner: TimeoutOwner, nowMs: number): void {
    try {
      owner.onTimeout(nowMs);
    } catch (error) {
      this.#onFault(error);
    }
  }

  #link(entry: TimerEntry): void {
    if (this.#wakeTick === -1) this.#catchUp();
    const due = Math.ceil(entry.deadlineMs / TICK_MS);
    const tick = Math.min(Math.max(due, this.#cursor + 1), this.#cursor + SLOTS - 1);
    const slot = tick & SLOT_MASK;
    const head = this.#slots[slot] ?? null;
    entry.tick = tick;
    entry.previous = null;
    entry.next = head;
    if (head !== null) head.previous = entry;
    this.#slots[slot] = entry;
    this.#count++;
    if (this.#wakeTick === -1 || tick < this.#wakeTick) this.#scheduleWake(tick);
  }

  #unlink(entry: TimerEntry): void {
    if (entry.tick === -1) return;
    if (entry.previous === null) this.#slots[entry.tick & SLOT_MASK] = entry.next;
    else entry.previous.next = entry.next;
    if (entry.next !== null) entry.next.previous = entry.previous;
    entry.tick = -1;
    entry.previous = null;
    entry.next = null;
    this.#count--;
  }

  /** An empty wheel does not turn; before it is used again it jumps to the present. */
  #catchUp(): void {
    this.#cursor = Math.max(this.#cursor, Math.floor(this.#clock.monotonicMs() / TICK_MS));
  }

  #onWake(): void {
    this.#cancelWake = null;
    // Entries that are moved on while the slots are run know only of their own tick; the earliest one is found below.
    this.#wakeTick = NO_WAKE;
    this.advance(this.#clock.monotonicMs());
    this.#wakeTick = -1;
    if (this.#count === 0) return;
    for (let tick = this.#cursor + 1; tick < this.#cursor + SLOTS; tick++) {
      if (this.#slots[tick & SLOT_MASK] !== null) {
        this.#scheduleWake(tick);
        return;
      }
    }
  }

  #scheduleWake(tick: number): void {
    this.#cancelWake?.();
    this.#wakeTick = tick;
    const delayMs = Math.max(1, Math.ceil(tick * TICK_MS - this.#clock.monotonicMs()));
    this.#cancelWake = this.#clock.after(delayMs, this.#wake);
  }
}
