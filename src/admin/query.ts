// Parameters of one admin request. Pairs keep their order; the first of several values wins; a parameter that
// takes a value and has none counts as not given.

export class AdminQuery {
  /** All pairs, percent-decoded, in the order of the request. A bare name has an empty value. */
  readonly pairs: readonly (readonly [name: string, value: string])[];

  /** @param text `a=b&c=d`, without the question mark. */
  constructor(text: string) {
    this.pairs = text === '' ? [] : text.split('&').filter(Boolean).map(parsePair);
  }

  /** A flag is set by being there, whatever its value. */
  flag(name: string): boolean {
    return this.pairs.some(([each]) => each === name);
  }

  value(name: string): string | undefined {
    const value = this.pairs.find(([each]) => each === name)?.[1];
    return value === '' ? undefined : value;
  }
}

function parsePair(pair: string): readonly [string, string] {
  const equals = pair.indexOf('=');
  if (equals < 0) return [decode(pair), ''];
  return [decode(pair.slice(0, equals)), decode(pair.slice(equals + 1))];
}

/** `+` stays: it is a common character of stat filters. Broken escapes stay as they are written. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
