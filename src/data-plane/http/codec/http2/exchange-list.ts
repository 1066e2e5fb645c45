// Exchanges that run over one connection, in the order in which they began. A chain through the exchanges themselves rather than a
// Set, for the reasons that stream-set.ts gives: what has ended points to nothing that still runs.

/** Belongs to one list at most, which alone sets these. */
export interface ListedExchange<Exchange> {
  previousListed: Exchange | null;
  nextListed: Exchange | null;
  isListed: boolean;
}

export class ExchangeList<Exchange extends ListedExchange<Exchange>> {
  #first: Exchange | null = null;
  #last: Exchange | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @param exchange that is in no list. */
  add(exchange: Exchange): void {
    const last = this.#last;
    if (last === null) this.#first = exchange;
    else last.nextListed = exchange;
    exchange.previousListed = last;
    exchange.isListed = true;
    this.#last = exchange;
    this.#size += 1;
  }

  /** @param exchange of this list, or of none. @returns whether it was there. */
  delete(exchange: Exchange): boolean {
    if (!exchange.isListed) return false;
    const { previousListed: previous, nextListed: next } = exchange;
    if (previous === null) this.#first = next;
    else previous.nextListed = next;
    if (next === null) this.#last = previous;
    else next.previousListed = previous;
    exchange.previousListed = null;
    exchange.nextListed = null;
    exchange.isListed = false;
    this.#size -= 1;
    return true;
  }

  /** Those of now, whatever becomes of them meanwhile. */
  all(): Exchange[] {
    const exchanges: Exchange[] = [];
    for (let exchange = this.#first; exchange !== null; exchange = exchange.nextListed) exchanges.push(exchange);
    return exchanges;
  }
}
