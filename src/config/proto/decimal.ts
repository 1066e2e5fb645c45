// Exact integers from decimal text, as JSON and YAML write them: `12`, `1e3`, `5.0`. Going through a double
// would lose the last digits of a 64-bit value.

const DECIMAL = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** Powers of ten past any 64-bit value; a longer exponent cannot be an integer in range. */
const MAX_EXPONENT = 100;

/** Digits past any 64-bit value, even with leading zeros that somebody may have meant kindly. */
const MAX_DIGITS = 200;

export type ExactInteger = bigint | 'fraction' | 'out of range' | 'not a number';

export function exactInteger(text: string): ExactInteger {
  const match = DECIMAL.exec(text);
  if (match === null) return 'not a number';
  const [, sign, whole, fraction = '', exponentText = '0'] = match;
  const exponent = Number(exponentText) - fraction.length;
  const digits = whole! + fraction;
  if (digits.length > MAX_DIGITS || Math.abs(exponent) > MAX_EXPONENT) {
    return /^0+$/.test(digits) ? 0n : exponent < 0 ? 'fraction' : 'out of range';
  }
  const scale = 10n ** BigInt(Math.abs(exponent));
  const magnitude = BigInt(digits);
  if (exponent < 0 && magnitude % scale !== 0n) return 'fraction';
  const value = exponent < 0 ? magnitude / scale : magnitude * scale;
  return sign === '-' ? -value : value;
}
