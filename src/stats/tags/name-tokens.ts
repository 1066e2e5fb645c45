// A stat's name cut at its dots. The address in `listener.<address>.` is one token, dots and all, so that
// patterns need not know how addresses look.

export interface NameTokens {
  readonly tokens: readonly string[];
  /** Where each token begins in the name. */
  readonly starts: readonly number[];
}

const LISTENER_PREFIX = 'listener.';
/** 1.2.3.4_80 or [2001_db8__1]_80: addresses as stat names spell them, ':' being replaced. */
const LISTENER_ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F_.%]*\])_\d+(?=\.|$)/;

export function nameTokens(name: string): NameTokens {
  const tokens: string[] = [];
  const starts: number[] = [];
  let at = 0;
  while (at <= name.length) {
    const end = tokenEnd(name, at);
    tokens.push(name.slice(at, end));
    starts.push(at);
    at = end + 1;
  }
  return { tokens, starts };
}

function tokenEnd(name: string, at: number): number {
  if (at === LISTENER_PREFIX.length && name.startsWith(LISTENER_PREFIX)) {
    const address = LISTENER_ADDRESS.exec(name.slice(at, at + 64));
    if (address) return at + address[0].length;
  }
  const dot = name.indexOf('.', at);
  return dot === -1 ? name.length : dot;
}

/** Names of clusters, listeners and addresses as they appear within stat names: ':' has a meaning to sinks. */
export function cleanStatName(text: string): string {
  return text.replaceAll(':', '_');
}
