// How many TLS handshakes of health checks go on at a time, of all clusters together. A handshake costs main about a millisecond
// in one piece; hundreds of hosts whose checks begin together would keep it from everything else for as long. Main thread.
//
//   ask ──a place is free──► BEGUN ──end, or HOLD_MS over──► its place is the next one's
//    └───none is──► WAITING ──the others before it have begun──► BEGUN
//                      └──end──► never begun
//
// A place is not held for longer than HOLD_MS: hosts that do not answer would keep checks of others waiting until they time
// out. What such a host still costs comes later than the bound, and no more often than places become free.

import type { Clock } from '../../../base/clock.ts';

/** Less than main's loop may be busy for in one turn before anybody would notice. */
const MAX_AT_A_TIME = 16;
const HOLD_MS = 50;

/** One handshake, from the wish for it on. */
export interface HandshakeTurn {
  /** It is done, has failed, or is not wanted any more. Idempotent. */
  end(): void;
}

class Turn implements HandshakeTurn {
  readonly begin: () => void;
  readonly #turns: HandshakeTurns;
  /** Undefined while it waits. */
  cancelHold: (() => void) | undefined;
  isOver = false;

  constructor(turns: HandshakeTurns, begin: () => void) {
    this.#turns = turns;
    this.begin = begin;
  }

  end(): void {
    this.#turns.leave(this);
  }
}

export class HandshakeTurns {
  readonly #clock: Clock;
  readonly #maxAtATime: number;
  /** In the order of their wishes. */
  readonly #waiting = new Set<Turn>();
  #held = 0;

  constructor(clock: Clock, maxAtATime = MAX_AT_A_TIME) {
    this.#clock = clock;
    this.#maxAtATime = maxAtATime;
  }

  /**
   * @param begin called once unless the turn ends before: within this call where a place is free. What it throws comes out
   *   of whatever has freed the place, and costs that place no longer than any other handshake does.
   */
  ask(begin: () => void): HandshakeTurn {
    const turn = new Turn(this, begin);
    if (this.#held < this.#maxAtATime) this.#start(turn);
    else this.#waiting.add(turn);
    return turn;
  }

  /** For turns. */
  leave(turn: Turn): void {
    if (turn.isOver) return;
    turn.isOver = true;
    if (turn.cancelHold === undefined) this.#waiting.delete(turn);
    else {
      turn.cancelHold();
      this.#free();
    }
  }

  #start(turn: Turn): void {
    this.#held += 1;
    turn.cancelHold = this.#clock.after(HOLD_MS, () => turn.end());
    turn.begin();
  }

  #free(): void {
    this.#held -= 1;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.#start(next);
  }
}
