// Answers that are late or wrong on purpose, to try what clients make of it. Worker thread.

import type { RuntimeDerived } from '../../../base/runtime.ts';
import type { TerminalFilterContext } from '../../../data-plane/index.ts';
import type { Fraction } from '../../../snapshot/index.ts';
import type { RedisFault } from './settings.ts';

interface CompiledFault {
  readonly fault: RedisFault;
  readonly share: RuntimeDerived<Fraction>;
}

const U32 = 2 ** 32;

export class RedisFaults {
  readonly #context: TerminalFilterContext;
  readonly #ofAll: readonly CompiledFault[];
  /** Those of the command first, then those of all commands. */
  readonly #byCommand = new Map<string, readonly CompiledFault[]>();

  constructor(faults: readonly RedisFault[], context: TerminalFilterContext) {
    this.#context = context;
    const compiled = faults.map((fault) => ({ fault, share: context.runtime.share(fault.share) }));
    this.#ofAll = compiled.filter(({ fault }) => fault.commands.length === 0);
    for (const name of new Set(faults.flatMap(({ commands }) => commands))) {
      const own = compiled.filter(({ fault }) => fault.commands.includes(name));
      this.#byCommand.set(name, [...own, ...this.#ofAll]);
    }
  }

  /** Draws. @param command in lower case. @returns null for an answer as it comes. */
  of(command: string): RedisFault | null {
    const candidates = this.#byCommand.get(command) ?? this.#ofAll;
    if (candidates.length === 0) return null;
    // One draw for all of them: shares add up, and a command has one fault at most.
    const drawn = this.#context.random() / U32;
    let bound = 0;
    for (const { fault, share } of candidates) {
      bound += share.value.numerator / share.value.denominator;
      if (drawn < bound) return fault;
    }
    return null;
  }
}
