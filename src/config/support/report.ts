// Collects what one check of one message finds: errors go on at once, warnings are held back and counted. Deprecated
// fields are counted only: what weir implements of them goes on working.

import type { FaultSeverity } from '../fault.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import type { DisabledExtensions } from './disabled-extensions.ts';

interface Warning {
  readonly at: string;
  count: number;
}

export class SupportReport {
  readonly disabled: DisabledExtensions;
  readonly #faults: FaultSink;
  /** By text: one field of one kind of message. Thousands of clusters often share the same ones. */
  readonly #warnings = new Map<string, Warning>();
  /** Uses by field. */
  readonly deprecated = new Map<string, number>();

  constructor(faults: FaultSink, disabled: DisabledExtensions) {
    this.#faults = faults;
    this.disabled = disabled;
  }

  add(severity: FaultSeverity, at: string, text: string): void {
    const warning = this.#warnings.get(text);
    if (severity === 'error') this.#faults.error(at, text);
    else if (warning === undefined) this.#warnings.set(text, { at, count: 1 });
    else warning.count += 1;
  }

  /** @param field with the name of its message. */
  addDeprecated(field: string): void {
    this.deprecated.set(field, (this.deprecated.get(field) ?? 0) + 1);
  }

  /** Gives each warning at the first place where it arose, with the number of others. */
  finish(): void {
    for (const [text, { at, count }] of this.#warnings) {
      this.#faults.warning(at, count === 1 ? text : `${text} (here and at ${count - 1} more)`);
    }
  }
}
