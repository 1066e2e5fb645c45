// What the traffic has seen: outcomes by kind, and everything that must not happen.

/** More say no more. */
const MAX_TOLD = 20;

export class Ledger {
  readonly #outcomes = new Map<string, number>();
  readonly #violations: string[] = [];
  #violationCount = 0;

  count(kind: string, outcome: string): void {
    const key = `${kind}: ${outcome}`;
    this.#outcomes.set(key, (this.#outcomes.get(key) ?? 0) + 1);
  }

  violation(text: string): void {
    this.#violationCount += 1;
    if (this.#violations.length < MAX_TOLD) this.#violations.push(text);
  }

  get outcomes(): readonly (readonly [string, number])[] {
    return [...this.#outcomes].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  get violations(): readonly string[] {
    const untold = this.#violationCount - this.#violations.length;
    return untold === 0 ? this.#violations : [...this.#violations, `and ${untold} more`];
  }
}
