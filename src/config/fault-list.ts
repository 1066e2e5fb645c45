// Where the faults of one load come together. Bounded, so that a huge file that is wrong on every line
// costs neither memory nor a terminal's scroll-back.

import type { ConfigFault } from './fault.ts';

/** Faults kept; the rest are only counted. */
const MAX_FAULTS = 1000;

export class FaultList {
  readonly #faults: ConfigFault[] = [];
  #errors = 0;
  #dropped = 0;

  add(fault: ConfigFault): void {
    if (fault.severity === 'error') this.#errors += 1;
    if (this.#faults.length < MAX_FAULTS) this.#faults.push(fault);
    else this.#dropped += 1;
  }

  addAll(faults: Iterable<ConfigFault>): void {
    for (const fault of faults) this.add(fault);
  }

  /** True once any error was added, kept or not. */
  get hasErrors(): boolean {
    return this.#errors > 0;
  }

  /** In the order they were found; a last one tells how many were left out. */
  get all(): readonly ConfigFault[] {
    if (this.#dropped === 0) return this.#faults;
    const message = `${this.#dropped} further faults are not shown`;
    const severity = this.#errors > 0 ? 'error' : 'warning';
    return [...this.#faults, { path: '', message, file: '', line: 0, column: 0, severity }];
  }
}
