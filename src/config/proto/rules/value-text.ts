// Values as faults quote them: short, on one line, in the notation of JSON.

import type { Int64 } from '../int64.ts';

const LONGEST_QUOTE = 80;
const NANOS_DIGITS = 9;

export interface DurationValue {
  readonly seconds: Int64;
  readonly nanos: number;
}

/** Long strings are cut: a fault must stay a line that fits a terminal. */
export function quote(text: string): string {
  return JSON.stringify(text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text);
}

/** `1.5s`, `-0.25s` */
export function durationText({ seconds, nanos }: DurationValue): string {
  const sign = seconds.toString().startsWith('-') || nanos < 0 ? '-' : '';
  const whole = seconds.toString().replace('-', '');
  const fraction = Math.abs(nanos).toString().padStart(NANOS_DIGITS, '0').replace(/0+$/, '');
  return `${sign}${whole}${fraction === '' ? '' : `.${fraction}`}s`;
}

export function valueText(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  return String(value);
}
