// Numbers as the page writes them: short, and as wide as each other where they stand in a column.

const NOTHING = '–';
const LARGE = ['', 'k', 'M', 'G', 'T', 'P'];

/** Three digits: 0.42, 7.31, 42.0, 731, 12.4k. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size < 0.005) return '~0';
  const step = size < 999.5 ? 0 : Math.min(LARGE.length - 1, Math.floor(Math.log10(size * 1.0005) / 3));
  const scaled = value / 1000 ** step;
  const digits = Math.abs(scaled) >= 99.95 ? 0 : Math.abs(scaled) >= 9.995 ? 1 : 2;
  return `${Number.isInteger(value) && step === 0 ? value : scaled.toFixed(digits)}${LARGE[step]}`;
}

/** Whole numbers in full, in groups of three. */
export function whole(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString('en') : short(value);
}

export function bytes(value: number | null): string {
  if (value === null) return NOTHING;
  const mib = value / 2 ** 20;
  return mib < 1024 ? `${mib.toFixed(mib < 100 ? 1 : 0)} MiB` : `${(mib / 1024).toFixed(2)} GiB`;
}

export function percent(share: number | null): string {
  if (share === null || !Number.isFinite(share)) return NOTHING;
  const value = 100 * share;
  // What is not all of it shall not look so.
  if (share < 1 && value >= 99.995) return '>99.99';
  return share === 1 || share === 0 ? String(value) : value.toFixed(value > 99 ? 2 : 1);
}

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [days, hours, minutes] = [
    Math.floor(whole / 86_400),
    Math.floor(whole / 3600) % 24,
    Math.floor(whole / 60) % 60,
  ];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

export function clockTime(ms: number): string {
  return new Date(ms).toLocaleTimeString([], { hour12: false });
}
