// What a filter of the user's own is made with: counts, logs and values of the runtime, under its name.

import { errorMessage, stackFrames } from '../../../base/errors.ts';
import type { FilterContext, FilterCounter, FilterTimes } from '../../../data-plane/index.ts';
import type { HttpFilterContext } from '../../../filter-modules/interface.ts';

/** Of both kinds. Names live as long as the process. */
const MAX_STATS = 1000;
const STAT_NAME = /^[\w:-]+(?:\.[\w:-]+)*$/;
const MAX_STAT_NAME = 200;

export class ModuleContext implements HttpFilterContext {
  readonly name: string;
  readonly log: HttpFilterContext['log'];
  readonly runtime: HttpFilterContext['runtime'];
  readonly #context: FilterContext;
  readonly #counters = new Map<string, FilterCounter>();
  readonly #times = new Map<string, FilterTimes>();

  constructor(name: string, context: FilterContext) {
    this.name = name;
    this.#context = context;
    const { runtime } = context;
    const log = context.log.ofFile('src/extensions/filters.http/module/context.ts');
    this.log = {
      debug: (message) => log.debug(`${name}: ${message}`),
      info: (message) => log.info(`${name}: ${message}`),
      warning: (message) => log.warning(`${name}: ${message}`),
      error: (message) => log.error(`${name}: ${message}`),
    };
    this.runtime = {
      text: (key) => runtime.text(key),
      number: (key) => runtime.number(key),
      flag: (key) => runtime.flag(key),
    };
  }

  onDispose(act: () => void | Promise<void>): void {
    if (typeof act !== 'function') throw new TypeError(`onDispose: expected a function, got ${typeof act}`);
    const report = (error: unknown): void => {
      this.#context.log.error(`fault in onDispose of filter ${this.name}: ${errorMessage(error)}`, stackFrames(error));
    };
    // An async function takes what it throws along.
    this.#context.onClose(() => void Promise.try(act).catch(report));
  }

  counter(name: string): { add(n?: number): void } {
    const counter = this.#stat(name, this.#counters, this.#times, (full) => this.#context.namedCounter(full));
    return {
      add(n = 1) {
        if (!Number.isSafeInteger(n) || n < 0)
          throw new TypeError(`a counter can grow by a whole number, got ${String(n)}`);
        counter.add(n);
      },
    };
  }

  time(name: string): { record(ms: number): void } {
    return this.#stat(name, this.#times, this.#counters, (full) => this.#context.namedTime(full));
  }

  #stat<Stat>(
    name: string,
    known: Map<string, Stat>,
    others: ReadonlyMap<string, unknown>,
    make: (name: string) => Stat,
  ): Stat {
    let stat = known.get(name);
    if (stat !== undefined) return stat;
    if (typeof name !== 'string' || name.length > MAX_STAT_NAME || !STAT_NAME.test(name)) {
      throw new TypeError(`${JSON.stringify(name)} cannot be the name of a stat`);
    }
    if (others.has(name)) throw new TypeError(`"${name}" is a stat of another kind`);
    if (known.size + others.size >= MAX_STATS) throw new RangeError(`more than ${MAX_STATS} stats of one filter`);
    stat = make(`${this.name}.${name}`);
    known.set(name, stat);
    return stat;
  }
}
