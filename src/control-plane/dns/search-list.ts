// The full names that a short one may stand for, from the `search` and `ndots` of /etc/resolv.conf. node:dns asks for
// names as they are, so this part of the system's configuration is applied here.

import { readFileSync } from 'node:fs';

const SYSTEM_RESOLVER_FILE = '/etc/resolv.conf';
const DEFAULT_NDOTS = 1;
/** More would be taken for a mistake by other resolvers, too. */
const MAX_NDOTS = 15;

export interface SearchList {
  readonly domains: readonly string[];
  /** A name with at least so many dots is tried as it is first. */
  readonly ndots: number;
}

export const NO_SEARCH: SearchList = { domains: [], ndots: DEFAULT_NDOTS };

/** @returns NO_SEARCH when the file cannot be read. */
export function readSearchList(path: string = SYSTEM_RESOLVER_FILE): SearchList {
  try {
    return parseResolvConf(readFileSync(path, 'latin1'));
  } catch {
    return NO_SEARCH;
  }
}

/** The last `search` or `domain` line counts. */
export function parseResolvConf(text: string): SearchList {
  let domains: readonly string[] = [];
  let ndots = DEFAULT_NDOTS;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/);
    if (keyword === 'search') domains = values;
    else if (keyword === 'domain') domains = values.slice(0, 1);
    else if (keyword === 'options') ndots = ndotsOf(values) ?? ndots;
  }
  return { domains: domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== ''), ndots };
}

/** The names to try, in order; an absolute name stands for itself. */
export function searchCandidates(name: string, { domains, ndots }: SearchList): readonly string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = domains.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...searched] : [...searched, name];
}

function ndotsOf(options: readonly string[]): number | undefined {
  const option = options.find((candidate) => candidate.startsWith('ndots:'));
  const value = Number(option?.slice('ndots:'.length));
  return Number.isInteger(value) && value >= 0 ? Math.min(value, MAX_NDOTS) : undefined;
}
