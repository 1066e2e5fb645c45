// Requests that a cluster turns away before a host is chosen: in maintenance mode, which the runtime declares, and those
// that its load assignment has dropped because the hosts could not bear them.

import type { Random } from '../../base/random.ts';
import { type Fraction, isWithin, type RuntimeDerived, type RuntimeValues } from '../../base/runtime.ts';
import { DROP_OVERLOAD_LIMIT, MAINTENANCE_MODE } from '../../base/runtime-values.ts';

export type SheddingReason = 'maintenance-mode' | 'drop-overload';

interface Shares {
  readonly maintenance: Fraction;
  readonly drop: Fraction;
}

const NOTHING: Fraction = { numerator: 0, denominator: 100 };

export class LoadShedding {
  readonly #runtime: RuntimeValues;
  readonly #random: Random;
  readonly #maintenanceKey: string;
  /** Null for nearly all clusters: nothing is turned away. */
  #shares: RuntimeDerived<Shares | null>;

  /** @param dropShare of the load assignment. */
  constructor(runtime: RuntimeValues, random: Random, clusterName: string, dropShare: Fraction | null) {
    this.#runtime = runtime;
    this.#random = random;
    this.#maintenanceKey = MAINTENANCE_MODE + clusterName;
    this.#shares = this.#sharesWith(dropShare);
  }

  /** Another assignment has come. */
  drop(share: Fraction | null): void {
    this.#shares = this.#sharesWith(share);
  }

  /** Why this request is turned away; null for most. */
  reason(): SheddingReason | null {
    const shares = this.#shares.value;
    if (shares === null) return null;
    if (isWithin(shares.maintenance, this.#random.u32())) return 'maintenance-mode';
    return isWithin(shares.drop, this.#random.u32()) ? 'drop-overload' : null;
  }

  #sharesWith(dropShare: Fraction | null): RuntimeDerived<Shares | null> {
    return this.#runtime.derived((values) => {
      const maintenance = values.fraction(this.#maintenanceKey) ?? NOTHING;
      const drop = dropShare === null ? NOTHING : limited(dropShare, values.integer(DROP_OVERLOAD_LIMIT));
      return maintenance.numerator === 0 && drop.numerator === 0 ? null : { maintenance, drop };
    });
  }
}

/** @param percent that may be dropped at most. */
function limited(share: Fraction, percent: number | undefined): Fraction {
  if (percent === undefined || share.numerator * 100 <= percent * share.denominator) return share;
  return { numerator: percent, denominator: 100 };
}
