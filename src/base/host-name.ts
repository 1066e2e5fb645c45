// Host names in the one form that files and DNS servers know: ASCII, in labels of 1 to 63 characters.

import { domainToASCII } from 'node:url';

const MAX_NAME_LENGTH = 253;
/** Anything printable but the dot: machines are named with underscores and worse. */
const LABEL = /^[!-\-/-[\]-~]{1,63}$/;

/** A name outside of ASCII becomes its encoded form, a final dot stays. @returns undefined when it is no name. */
export function asciiHostName(name: string): string | undefined {
  // Names in ASCII are left as they are: the function would take some of them for addresses.
  const ascii = /^[\0-\x7f]*$/.test(name) ? name : domainToASCII(name);
  return isHostName(ascii) ? ascii : undefined;
}

export function isHostName(name: string): boolean {
  const relative = name.endsWith('.') ? name.slice(0, -1) : name;
  return relative.length <= MAX_NAME_LENGTH && relative.split('.').every((label) => LABEL.test(label));
}
