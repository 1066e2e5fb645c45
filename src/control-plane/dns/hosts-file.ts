// Addresses by name from /etc/hosts. Read again when the file has changed, as an operator expects of it.

import { isIP } from 'node:net';
import { type ReportUnread, WatchedText } from './watched-text.ts';

const SYSTEM_HOSTS_FILE = '/etc/hosts';
/** Always means this machine, whatever a server says (RFC 6761 section 6.3). */
const LOCALHOST = 'localhost';
const LOOPBACK: readonly string[] = ['127.0.0.1', '::1'];

export class HostsFile {
  readonly #entries: WatchedText<ReadonlyMap<string, readonly string[]>>;

  constructor(path: string = SYSTEM_HOSTS_FILE, report?: ReportUnread) {
    this.#entries = new WatchedText(path, parseHosts, report);
  }

  /** All addresses of a name, or undefined when it is not here and may be asked elsewhere. */
  async find(name: string): Promise<readonly string[] | undefined> {
    const entries = await this.#entries.read();
    const key = canonicalName(name);
    const found = entries.get(key);
    if (found !== undefined) return found;
    return key === LOCALHOST || key.endsWith(`.${LOCALHOST}`) ? LOOPBACK : undefined;
  }
}

/** Lines of an address and its names; what follows `#` is a comment, what is no address is skipped. */
export function parseHosts(text: string): Map<string, string[]> {
  const entries = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [ip = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (isIP(ip) === 0) continue;
    for (const name of names) {
      const key = canonicalName(name);
      const known = entries.get(key);
      if (known === undefined) entries.set(key, [ip]);
      else if (!known.includes(ip)) known.push(ip);
    }
  }
  return entries;
}

function canonicalName(name: string): string {
  const absolute = name.endsWith('.') ? name.slice(0, -1) : name;
  return absolute.toLowerCase();
}
