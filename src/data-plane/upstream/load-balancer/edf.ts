// Earliest-deadline-first scheduler: entries come up in proportion to their weights, evenly interleaved.
// An entry's deadline is the time of its last pick plus 1/weight; ties go to the entry that has waited longest.
// All arithmetic is in doubles and in the reference's order, so that the same seed gives the same sequence.

interface Entry<T> {
  deadline: number;
  /** Insertion counter: breaks ties first in, first out. */
  order: number;
  readonly item: T;
}

/** Start positions repeat from here on; keeps the emulation of earlier picks exact in doubles. */
export const SEED_MODULUS = 429_496_729;

/** Added to weights when positions are computed, so that no division meets zero. */
const WEIGHT_EPSILON = 1e-13;

export class EdfScheduler<T> {
  readonly #weightOf: (item: T) => number;
  /** Binary heap by (deadline, order). */
  readonly #heap: Entry<T>[] = [];
  #time = 0;
  #nextOrder = 0;

  /**
   * @param weightOf asked again after each pick; above zero.
   * @param picksDone starts as if so many picks had been made before, in time proportional to the items.
   */
  constructor(items: readonly T[], weightOf: (item: T) => number, picksDone = 0) {
    this.#weightOf = weightOf;
    const weights = items.map((item) => weightOf(item) + WEIGHT_EPSILON);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    let missing = picksDone;
    for (const [index, item] of items.entries()) {
      const weight = weights[index]!;
      let picks = Math.floor((weight * picksDone) / sum);
      if (picks > 0 && picks / weight >= picksDone / sum) picks--;
      this.#insert(item, picksDone === 0 ? 1 / weightOf(item) : (picks + 1) / weight);
      this.#time = Math.max(this.#time, picks / weight);
      missing -= picks;
    }
    for (; missing > 0 && items.length > 0; missing--) this.pick();
  }

  /** The next item, or undefined when there is none. */
  pick(): T | undefined {
    const first = this.#heap[0];
    if (first === undefined) return undefined;
    this.#time = first.deadline;
    first.deadline = this.#time + 1 / this.#weightOf(first.item);
    first.order = this.#nextOrder++;
    this.#siftDown();
    return first.item;
  }

  #insert(item: T, deadline: number): void {
    const heap = this.#heap;
    const entry = { deadline, order: this.#nextOrder++, item };
    let index = heap.length;
    heap.push(entry);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!before(entry, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = entry;
  }

  #siftDown(): void {
    const heap = this.#heap;
    const entry = heap[0]!;
    let index = 0;
    for (let child = 1; child < heap.length; child = 2 * index + 1) {
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, entry)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = entry;
  }
}

function before<T>(a: Entry<T>, b: Entry<T>): boolean {
  return a.deadline < b.deadline || (a.deadline === b.deadline && a.order < b.order);
}
