// The runtime of one thread: the values in force by key, and settings that they override. Any thread: main sends each
// worker the same values, which replace the former ones as a whole.
//
// A setting is worked out anew when the values have been replaced since it was read last. To read it is one comparison,
// so that whoever decides per request may ask each time.

import { FEATURE_GUARDS, type FeatureGuard } from './feature-guards.ts';
import { runtimeFlag, runtimeFraction, runtimeInteger, runtimeKey, runtimeNumber } from './runtime-values.ts';

/** Share of requests, 0 to `denominator`. */
export interface Fraction {
  readonly numerator: number;
  readonly denominator: number;
}

/** What a configuration says, and the key under which an operator may say something else; empty for none. */
export interface RuntimeSetting<Value> {
  readonly key: string;
  readonly default: Value;
}

/** Values in force as text, by their keys in the one spelling of runtimeKey. None is empty. */
export type RuntimeTexts = ReadonlyMap<string, string>;

const UINT32_MAX = 2 ** 32 - 1;

export class RuntimeValues {
  #texts: RuntimeTexts;
  /** Another number after each replacement. */
  version = 0;

  constructor(texts: RuntimeTexts = new Map()) {
    this.#texts = texts;
  }

  get texts(): RuntimeTexts {
    return this.#texts;
  }

  replace(texts: RuntimeTexts): void {
    this.#texts = texts;
    this.version += 1;
  }

  text(key: string): string | undefined {
    return this.#texts.get(runtimeKey(key));
  }

  /** Whole, 0 or more; undefined when there is no such key, or something else is set. */
  integer(key: string): number | undefined {
    return this.#read(key, runtimeInteger);
  }

  /** Any number, finite; undefined as for `integer`. */
  number(key: string): number | undefined {
    return this.#read(key, runtimeNumber);
  }

  /** Undefined as for `integer`. */
  flag(key: string): boolean | undefined {
    return this.#read(key, runtimeFlag);
  }

  /** Whether a feature is on. */
  hasFeature(guard: FeatureGuard): boolean {
    return this.flag(guard) ?? FEATURE_GUARDS[guard];
  }

  /** A whole number says percent; undefined as for `integer`. */
  fraction(key: string): Fraction | undefined {
    return this.#read(key, runtimeFraction);
  }

  /** Whether something that happens in `percent` of cases happens now, unless a fraction is set. @param random a u32. */
  happens(key: string, percent: number, random: number): boolean {
    const share = this.fraction(key);
    return share === undefined ? random % 100 < percent : isWithin(share, random);
  }

  /** Settings with the whole numbers that are set under `prefix` and the last parts of their keys. */
  overriding<Settings extends object>(
    prefix: string,
    keys: Readonly<Record<string, string>>,
    settings: Settings,
  ): Settings {
    if (this.#texts.size === 0) return settings;
    const found: Record<string, number> = {};
    for (const [name, key] of Object.entries(keys)) {
      const value = this.integer(prefix + key);
      if (value !== undefined) found[name] = Math.min(value, UINT32_MAX);
    }
    return Object.keys(found).length === 0 ? settings : { ...settings, ...found };
  }

  /** What `derive` makes of the values, kept until they are replaced. */
  derived<Value>(derive: (values: RuntimeValues) => Value): RuntimeDerived<Value> {
    return new RuntimeDerived(this, derive);
  }

  /** A share of requests that the runtime may override. */
  share({ key, default: byDefault }: RuntimeSetting<Fraction>): RuntimeDerived<Fraction> {
    return this.derived((values) => values.fraction(key) ?? byDefault);
  }

  #read<Value>(key: string, read: (text: string) => Value | undefined): Value | undefined {
    if (key === '') return undefined;
    const text = this.text(key);
    return text === undefined ? undefined : read(text);
  }
}

export class RuntimeDerived<Value> {
  readonly #values: RuntimeValues;
  readonly #derive: (values: RuntimeValues) => Value;
  #version: number;
  #value: Value;

  constructor(values: RuntimeValues, derive: (values: RuntimeValues) => Value) {
    this.#values = values;
    this.#derive = derive;
    this.#version = values.version;
    this.#value = derive(values);
  }

  /** Hot: one comparison. */
  get value(): Value {
    if (this.#version !== this.#values.version) {
      this.#version = this.#values.version;
      this.#value = this.#derive(this.#values);
    }
    return this.#value;
  }
}

/** @param random uniform, 0 to 2^32 - 1. */
export function isWithin({ numerator, denominator }: Fraction, random: number): boolean {
  return random % denominator < numerator;
}
