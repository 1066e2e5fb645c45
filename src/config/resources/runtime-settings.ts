// Messages of values that the runtime may override → settings with the key and what holds without it.

import type { Fraction, RuntimeSetting } from '../../snapshot/index.ts';
import { FractionalPercent_DenominatorType as Denominator } from '../proto/generated/enums.ts';
import type { FractionalPercent, RuntimeFeatureFlag, RuntimeFractionalPercent, RuntimeUInt32 } from './messages.ts';
import { valueOr } from './units.ts';

const DENOMINATORS: Readonly<Record<number, number>> = {
  [Denominator.HUNDRED]: 100,
  [Denominator.TEN_THOUSAND]: 10_000,
  [Denominator.MILLION]: 1_000_000,
};

export function fractionOf({ numerator, denominator }: FractionalPercent): Fraction {
  return { numerator, denominator: DENOMINATORS[denominator] ?? 100 };
}

/** Without a default the message says nothing; null then. */
export function runtimeFractionOf(message: RuntimeFractionalPercent | null): RuntimeSetting<Fraction> | null {
  const percent = message?.default_value;
  return percent ? { key: message.runtime_key, default: fractionOf(percent) } : null;
}

/** A number that stands for percent; the form from before fractions. */
export function runtimePercentOf(message: RuntimeUInt32): RuntimeSetting<Fraction> {
  return { key: message.runtime_key, default: { numerator: message.default_value, denominator: 100 } };
}

export function runtimeIntegerOf(message: RuntimeUInt32 | null): RuntimeSetting<number> {
  return { key: message?.runtime_key ?? '', default: message?.default_value ?? 0 };
}

export function runtimeFlagOf(message: RuntimeFeatureFlag | null, byDefault: boolean): RuntimeSetting<boolean> {
  return { key: message?.runtime_key ?? '', default: valueOr(message?.default_value, byDefault) };
}
