// What an unquoted YAML scalar means. The rules are those of the YAML reader that existing configurations
// were written for, which differ from YAML 1.2: `yes` is a boolean, `010` is eight, and a decimal fraction
// is left as text so that the field type, not the YAML reader, decides about its digits.
// Order of tests: null, boolean, integer, string.

import { type ScalarNode, scalarNode } from './node.ts';

const NULLS = new Set(['', '~', 'null', 'Null', 'NULL']);

const BOOLEANS: ReadonlyMap<string, 'true' | 'false'> = new Map(
  (['true', 'yes', 'on', 'y', 'false', 'no', 'off', 'n'] as const).flatMap((word, index) => {
    const value: 'true' | 'false' = index < 4 ? 'true' : 'false';
    return [word, word.toUpperCase(), word[0]!.toUpperCase() + word.slice(1)].map(
      (spelling) => [spelling, value] as const,
    );
  }),
);

const DECIMAL = /^[+-]?(?:0|[1-9][0-9]*)$/;
const HEXADECIMAL = /^([+-]?)0[xX]([0-9a-fA-F]+)$/;
const OCTAL = /^([+-]?)0([0-7]+)$/;

const INT32_MIN = -(2n ** 31n);
const INT32_MAX = 2n ** 31n - 1n;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/** Nine digits always fit 32 bits, so the common case needs no big number. */
const SMALL_DECIMAL = /^(?:0|[1-9][0-9]{0,8})$/;

/** A plain scalar by the rules above. */
export function plainScalar(text: string, offset: number): ScalarNode {
  if (NULLS.has(text)) return scalarNode(offset, 'null', 'null', text);
  if (SMALL_DECIMAL.test(text)) return scalarNode(offset, 'number', text);
  const bool = BOOLEANS.get(text);
  if (bool !== undefined) return scalarNode(offset, 'bool', bool, text);
  const integer = parseInteger(text);
  if (integer === undefined) return scalarNode(offset, 'string', text);
  const digits = integer.toString();
  const fitsNumber = integer >= INT32_MIN && integer <= INT32_MAX;
  return scalarNode(offset, fitsNumber ? 'number' : 'string', digits, text);
}

/** Integers of 64 bits; what lies beyond stays text and is judged by its field. */
function parseInteger(text: string): bigint | undefined {
  const first = text.charCodeAt(0);
  // '+', '-' or a digit: everything else is cheaply not a number.
  if (first !== 0x2b && first !== 0x2d && (first < 0x30 || first > 0x39)) return undefined;
  let value: bigint | undefined;
  if (DECIMAL.test(text)) value = BigInt(text.startsWith('+') ? text.slice(1) : text);
  else value = signed(HEXADECIMAL.exec(text), '0x') ?? signed(OCTAL.exec(text), '0o');
  return value !== undefined && value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}

function signed(match: RegExpExecArray | null, radixPrefix: string): bigint | undefined {
  if (match === null) return undefined;
  const magnitude = BigInt(radixPrefix + match[2]!);
  return match[1] === '-' ? -magnitude : magnitude;
}
