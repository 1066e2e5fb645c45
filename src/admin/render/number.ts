// Numbers as C prints them.

const DIGITS = 6;
/** More than any double has between a tie and its neighbours. */
const EXACT_DIGITS = 30;

/** printf's %g: six significant digits without trailing zeros, an exponent of two digits where it is shorter. */
export function formatG(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf';
  const rounded = roundHalfEven(value);
  const [mantissa = '', exponentText = ''] = rounded.toExponential(DIGITS - 1).split('e');
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < DIGITS) return trimZeros(rounded.toFixed(DIGITS - 1 - exponent));
  const sign = exponent < 0 ? '-' : '+';
  return `${trimZeros(mantissa)}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/**
 * C rounds a value that lies exactly between two to the even one, JavaScript away from zero. Other values come
 * back as they are.
 */
function roundHalfEven(value: number): number {
  const tie = /^(-?\d\.\d{4}[02468])50*e(.+)$/.exec(value.toExponential(EXACT_DIGITS));
  return tie === null ? value : Number(`${tie[1]}e${tie[2]}`);
}

function trimZeros(decimal: string): string {
  return decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal;
}
