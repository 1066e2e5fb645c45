// What can stand in a request as the host that it is for.

/** A name, or an address in brackets, and perhaps a port; the parsers of heads take no others. */
const AUTHORITY = /^(?:\[[\d.:a-f]+\]|[\w.~!$&'()*+;=,-]+)(?::\d{1,5})?$/i;
const NOT_OF_NAMES = /[^\w.~!$&'()*+;=,-]+/g;

export function isAuthority(text: string): boolean {
  return AUTHORITY.test(text);
}

/** Whom requests to a cluster are for where nobody has said it: its name, in which dashes take the place of what no host has. */
export function clusterAuthority(name: string): string {
  return isAuthority(name) ? name : name.replaceAll(NOT_OF_NAMES, '-');
}
