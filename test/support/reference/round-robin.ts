// Plain twin of assembly/lb/schedule.ts: earliest deadline first over an unsorted list, searched at each pick.

export interface Turn {
  readonly host: number;
  deadline: number;
  order: number;
}

const EPSILON = 1e-13;

/** Far more than rounding adds up to in a test, far less than weights differ by. */
const UNDECIDED = 1e-9;

export class ScheduleReference {
  readonly #weightOf: (host: number) => number;
  readonly #turns: Turn[] = [];
  #orders = 0;

  /** @param weightOf asked again whenever a host is put back. */
  constructor(count: number, weightOf: (host: number) => number, picksDone: number) {
    this.#weightOf = weightOf;
    const weights = Array.from({ length: count }, (_, host) => weightOf(host) + EPSILON);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    let missing = picksDone;
    for (const [host, weight] of weights.entries()) {
      let picks = Math.floor((weight * picksDone) / sum);
      if (picks > 0 && picks / weight >= picksDone / sum) picks -= 1;
      const deadline = picksDone === 0 ? 1 / weightOf(host) : (picks + 1) / weight;
      this.#turns.push({ host, deadline, order: this.#orders++ });
      missing -= picks;
    }
    for (; missing > 0; missing -= 1) this.pick();
  }

  /** Two hosts are next at the same time but for what the last digits of powers decide, which implementations round in their own way. */
  get isUndecided(): boolean {
    const [first, second] = this.#turns.map(({ deadline }) => deadline).sort((a, b) => a - b);
    return first !== undefined && second !== undefined && second - first <= first * UNDECIDED;
  }

  pick(): number {
    const next = this.#turns.reduce((a, b) =>
      b.deadline < a.deadline || (b.deadline === a.deadline && b.order < a.order) ? b : a,
    );
    next.deadline += 1 / this.#weightOf(next.host);
    next.order = this.#orders++;
    return next.host;
  }
}
