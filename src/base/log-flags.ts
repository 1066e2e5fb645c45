// The flags of a log line's layout, which src/log/format.ts fills in. What is none of them stays in the line as it was written,
// which is hardly ever meant. Source: spec 2.7.

/** What may follow the percent sign, an alignment and a width. */
export const LOG_FLAGS = 'v_jtPnlL@sg#!aAbBcCYDxmdHIMSefFprRTXz%^$';

const FLAG = /%[-=]?(\d*)(!?)([\s\S]?)/g;

/** What stands in a layout like a flag and is none, each once, with its percent sign. */
export function unknownLogFlags(layout: string): readonly string[] {
  const unknown = [...layout.matchAll(FLAG)].flatMap(([whole, width, cut, letter]) => {
    // `%!` is a flag of its own; the mark for cutting needs a width before it.
    const isKnown = (cut === '!' && width === '') || (letter !== '' && LOG_FLAGS.includes(letter!));
    return isKnown ? [] : whole;
  });
  return [...new Set(unknown)];
}

/** What to say of them; undefined where there are none. */
export function describeUnknownLogFlags(layout: string): string | undefined {
  const unknown = unknownLogFlags(layout);
  if (unknown.length === 0) return undefined;
  const named = unknown.map((flag) => `'${flag}'`).join(', ');
  return `${named} ${unknown.length === 1 ? 'is no flag and stays' : 'are no flags and stay'} in each line as written; flags are % with one of ${LOG_FLAGS}`;
}
