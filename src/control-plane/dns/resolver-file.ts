// /etc/resolv.conf: whom to ask, and which full names a short one may stand for.

import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { DnsServerList } from './dns-client.ts';
import type { DnsServerAddress } from './exchange.ts';
import { type ReportUnread, WatchedText } from './watched-text.ts';

const SYSTEM_RESOLVER_FILE = '/etc/resolv.conf';
const DNS_PORT = 53;
const DEFAULT_NDOTS = 1;
/** More would be taken for a mistake by other resolvers, too. */
const MAX_NDOTS = 15;

export interface SearchList {
  readonly domains: readonly string[];
  /** A name with at least so many dots is tried as it is first. */
  readonly ndots: number;
}

export const NO_SEARCH: SearchList = { domains: [], ndots: DEFAULT_NDOTS };

export interface ResolverConfig extends DnsServerList {
  /** Empty when the file names none. */
  readonly servers: readonly DnsServerAddress[];
  readonly searchList: SearchList;
}

export class ResolverFile {
  readonly #config: WatchedText<ResolverConfig>;

  constructor(path: string = SYSTEM_RESOLVER_FILE, report?: ReportUnread) {
    this.#config = new WatchedText(path, (text) => parseResolvConf(text, hostname()), report);
  }

  async read(): Promise<ResolverConfig> {
    return await this.#config.read();
  }
}

/** @param ownName of this machine; its domain is searched where the file names none. */
export function parseResolvConf(text: string, ownName: string): ResolverConfig {
  const servers: DnsServerAddress[] = [];
  const dot = ownName.indexOf('.');
  // The last `search` or `domain` line counts.
  let domains: readonly string[] = dot === -1 ? [] : [ownName.slice(dot + 1)];
  const options = new Set<string>();
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/);
    if (keyword === 'nameserver' && isIP(values[0] ?? '') !== 0) servers.push({ ip: values[0]!, port: DNS_PORT });
    else if (keyword === 'search') domains = values;
    else if (keyword === 'domain') domains = values.slice(0, 1);
    else if (keyword === 'options') for (const option of values) options.add(option);
  }
  domains = domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== '');
  return {
    servers,
    searchList: { domains, ndots: ndotsOf(options) ?? DEFAULT_NDOTS },
    useTcp: options.has('use-vc') || options.has('usevc'),
    rotate: options.has('rotate'),
  };
}

/** The names to try, in order; an absolute name stands for itself. */
export function searchCandidates(name: string, { domains, ndots }: SearchList): readonly string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = domains.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...searched] : [...searched, name];
}

function ndotsOf(options: ReadonlySet<string>): number | undefined {
  const option = [...options].findLast((candidate) => candidate.startsWith('ndots:'));
  const value = Number(option?.slice('ndots:'.length));
  return Number.isInteger(value) && value >= 0 ? Math.min(value, MAX_NDOTS) : undefined;
}
