// Picking from shares: each takes a part of the requests, as main has worked it out from priorities and health. A
// request whose attempts have used up priorities is shared out among the others.

import type { Random } from '../../../base/random.ts';
import type { HostShare } from '../../../wasm/lb.ts';
import type { DrawContext, PickContext, PickPlace } from './pick-context.ts';
import { NO_HOST, type SourcePicker } from './source-picker.ts';

export interface PickedShare extends Omit<HostShare, 'source'> {
  readonly picker: SourcePicker;
}

/** A number for each request, 0 to 99. */
export type DrawPercent = (request: PickContext) => number;

export function randomPercent(random: Random): DrawPercent {
  return () => random.u32() % 100;
}

/** What 2^32 leaves when it is divided by 100. */
const HIGH_HALF = 96;

/** The request's hash modulo 100: equal hashes draw alike. */
export function hashPercent({ hashHi, hashLo }: PickContext): number {
  return (((hashHi >>> 0) % 100) * HIGH_HALF + ((hashLo >>> 0) % 100)) % 100;
}

const ALL = 100;

export class SharesPicker implements SourcePicker {
  readonly #shares: readonly PickedShare[];
  readonly #draw: DrawPercent;
  readonly #onPanic: () => void;
  /** Takes all requests; null where they are shared out. */
  readonly #only: PickedShare | null;

  constructor(shares: readonly PickedShare[], draw: DrawPercent, onPanic: () => void) {
    this.#shares = shares;
    this.#draw = draw;
    this.#onPanic = onPanic;
    const first = shares.find(({ upTo }) => upTo > 0);
    this.#only = first?.upTo === ALL ? first : null;
  }

  pick(request: PickContext, draws: DrawContext | null): number {
    if (draws !== null) {
      if (draws.place !== undefined) return this.#pickAt(draws.place, request, draws);
      if (draws.spentPriorities.size > 0) return this.#pickElsewhere(request, draws);
    }
    return this.#pickByShare(request, draws);
  }

  #pickByShare(request: PickContext, draws: DrawContext | null): number {
    if (this.#only !== null) return this.#pickFrom(this.#only, request, draws);
    const drawn = this.#draw(request) + 1;
    for (const share of this.#shares) if (drawn <= share.upTo) return this.#pickFrom(share, request, draws);
    return NO_HOST;
  }

  #pickFrom(share: PickedShare, request: PickContext, draws: DrawContext | null): number {
    if (share.isPanic) this.#onPanic();
    return share.picker.pick(request, draws);
  }

  /** By shares where those hosts have none. */
  #pickAt({ priority, isDegraded }: PickPlace, request: PickContext, draws: DrawContext): number {
    let found: PickedShare | null = null;
    // Healthy hosts have theirs before degraded ones.
    for (const share of this.#shares) {
      if (share.priority !== priority) continue;
      found = share;
      if (!isDegraded) break;
    }
    return found === null ? this.#pickByShare(request, draws) : this.#pickFrom(found, request, draws);
  }

  /** As if the hosts of spent priorities could take nothing. */
  #pickElsewhere(request: PickContext, draws: DrawContext): number {
    const available = this.#availability(draws);
    if (available === 0) {
      draws.spentPriorities.clear();
      return this.pick(request, draws);
    }
    const drawn = this.#draw(request) + 1;
    // What rounding leaves goes to the first.
    let first: PickedShare | null = null;
    let upTo = 0;
    for (const share of this.#shares) {
      if (share.availability === 0 || draws.spentPriorities.has(share.priority)) continue;
      first ??= share;
      upTo += Math.floor((share.availability * ALL) / available);
      if (drawn <= upTo) return this.#pickFrom(share, request, draws);
    }
    return this.#pickFrom(first!, request, draws);
  }

  /** Percent of all requests that the priorities can take which are not spent. */
  #availability(draws: DrawContext): number {
    let sum = 0;
    for (const share of this.#shares) if (!draws.spentPriorities.has(share.priority)) sum += share.availability;
    return Math.min(ALL, sum);
  }
}
