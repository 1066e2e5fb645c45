// Finds out when a peer's system has all that was written to it. Before that a reset would throw away what waits in ours,
// and so would a close: the first byte that the peer sends to a closed socket has the system reset the connection.
//
// The system says so when asked, and at no other time: looks begin close together, for most peers lack one round trip,
// and grow further apart. Where it does not say (a pipe, a platform without system calls), what it has taken counts as
// delivered; for a pipe that is so.

import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { descriptorOf } from '../../base/descriptor-budget.ts';
import type { SystemCalls } from '../../base/system-calls.ts';
import { type TimeoutOwner, TimerEntry, type TimerWheel } from './timer-wheel.ts';

const FIRST_LOOK_MS = 8;
const LAST_LOOK_MS = 256;

export interface DeliveryOwner {
  /** The peer has taken something since the last look: not all yet. */
  onDeliveryProgress(): void;
  /** Once. Perhaps called within `start`. */
  onDelivered(): void;
}

export interface DeliveryContext {
  readonly systemCalls: SystemCalls | undefined;
  readonly wheel: TimerWheel;
  readonly clock: Clock;
}

/** The rest of what one socket sends; nothing more may be written to it. */
export class Delivery implements TimeoutOwner {
  readonly #context: DeliveryContext;
  readonly #socket: Socket;
  readonly #owner: DeliveryOwner;
  readonly #timer = new TimerEntry(this);
  #lookMs = FIRST_LOOK_MS;
  #acknowledged = 0;

  constructor(context: DeliveryContext, socket: Socket, owner: DeliveryOwner) {
    this.#context = context;
    this.#socket = socket;
    this.#owner = owner;
  }

  /** Looks for the first time. */
  start(): void {
    this.#look(false);
  }

  /** The owner is told of nothing any more. */
  stop(): void {
    this.#context.wheel.remove(this.#timer);
  }

  onTimeout(): void {
    this.#look(true);
  }

  #look(isFurther: boolean): void {
    const { systemCalls, wheel, clock } = this.#context;
    const sent = systemCalls?.sentState(descriptorOf(this.#socket));
    if (this.#isTaken && (sent?.isAcknowledged ?? true)) {
      this.#owner.onDelivered();
      return;
    }
    wheel.arm(this.#timer, clock.monotonicMs() + this.#lookMs);
    this.#lookMs = Math.min(2 * this.#lookMs, LAST_LOOK_MS);
    const acknowledged = sent?.acknowledgedBytes ?? 0;
    const hasMoved = acknowledged > this.#acknowledged;
    this.#acknowledged = acknowledged;
    if (isFurther && hasMoved) this.#owner.onDeliveryProgress();
  }

  /** By our own system, the end of the stream included if it has been said. */
  get #isTaken(): boolean {
    const { writableLength, writableEnded, writableFinished } = this.#socket;
    return writableLength === 0 && writableEnded === writableFinished;
  }
}
