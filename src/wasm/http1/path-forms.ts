// Forms of a path that mean the same, brought to one, in place: no step makes a path longer. A path begins with '/' and is
// bytes[start..end) without its query; each step returns its new end. RFC 3986 section 6.2.2, but for the case of letters.

const NUL = 0;
const PERCENT = 0x25;
const DOT = 0x2e;
const SLASH = 0x2f;
const BACKSLASH = 0x5c;
/** "%2F" */
const ESCAPE_BYTES = 3;

/** Result of `normalizePath` for a path with an escaped NUL, which ends texts for some who read them. */
export const PATH_INVALID = -1;

/** Whether any of the steps could change something: there are escapes, backslashes, dots behind slashes or slashes in a row. */
export function mayHaveForms(bytes: Uint8Array, start: number, end: number): boolean {
  let before = 0;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]!;
    if (byte === PERCENT || byte === BACKSLASH) return true;
    if (before === SLASH && (byte === SLASH || byte === DOT)) return true;
    before = byte;
  }
  return false;
}

/** Escaped slashes and backslashes become plain ones. */
export function unescapeSlashes(bytes: Uint8Array, start: number, end: number): number {
  let out = start;
  for (let at = start; at < end; at += 1) {
    const value = escapedAt(bytes, at, end);
    if (value === SLASH || value === BACKSLASH) {
      bytes[out] = value;
      at += ESCAPE_BYTES - 1;
    } else {
      bytes[out] = bytes[at]!;
    }
    out += 1;
  }
  return out;
}

/**
 * Escapes of characters that need none are taken off, backslashes become slashes, and dot segments go. Other escapes stay, and
 * so does a percent sign that begins none.
 * @returns PATH_INVALID for an escaped NUL; the path is spoilt then.
 */
export function normalizePath(bytes: Uint8Array, start: number, end: number): number {
  let out = start;
  let at = start;
  while (at < end) {
    // At a slash.
    at += 1;
    bytes[out] = SLASH;
    out += 1;
    const segment = out;
    // Two behind a percent sign that begins no escape. What is taken off there could make it one, for the next reader.
    let bareEnd = 0;
    while (at < end && bytes[at] !== SLASH && bytes[at] !== BACKSLASH) {
      const value = escapedAt(bytes, at, end);
      if (value === NUL) return PATH_INVALID;
      if (isUnreserved(value) && out >= bareEnd) {
        bytes[out] = value;
        at += ESCAPE_BYTES;
        out += 1;
        continue;
      }
      if (value < 0 && bytes[at] === PERCENT) bareEnd = out + ESCAPE_BYTES;
      // An escape is passed as a whole: its digits begin no other.
      const length = value < 0 ? 1 : ESCAPE_BYTES;
      for (let copied = 0; copied < length; copied += 1) bytes[out + copied] = bytes[at + copied]!;
      at += length;
      out += length;
    }
    out = withoutDotSegment(bytes, start, segment, out, at === end);
  }
  return out;
}

/** Slashes in a row become one. */
export function mergeSlashes(bytes: Uint8Array, start: number, end: number): number {
  let out = start;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]!;
    if (byte === SLASH && out > start && bytes[out - 1] === SLASH) continue;
    bytes[out] = byte;
    out += 1;
  }
  return out;
}

/**
 * @param segment the first byte of the last segment of bytes[start..out), behind its slash.
 * @param isLast no slash follows.
 * @returns the new end: at the slash that follows, or behind the last one of all.
 */
function withoutDotSegment(bytes: Uint8Array, start: number, segment: number, out: number, isLast: boolean): number {
  const length = out - segment;
  if (length === 0 || length > 2 || bytes[segment] !== DOT || bytes[out - 1] !== DOT) return out;
  let slash = segment - 1;
  if (length === 2 && slash > start) {
    do slash -= 1;
    while (bytes[slash] !== SLASH);
  }
  return isLast ? slash + 1 : slash;
}

/** The byte that the escape at `at` stands for; -1 when there is none. */
function escapedAt(bytes: Uint8Array, at: number, end: number): number {
  if (bytes[at] !== PERCENT || at + 2 >= end) return -1;
  const high = hexDigit(bytes[at + 1]!);
  const low = hexDigit(bytes[at + 2]!);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** Letters, digits and "-._~" (RFC 3986 section 2.3). */
function isUnreserved(byte: number): boolean {
  const letter = byte | 0x20;
  if (letter >= 0x61 && letter <= 0x7a) return true;
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === DOT || byte === 0x5f || byte === 0x7e;
}
