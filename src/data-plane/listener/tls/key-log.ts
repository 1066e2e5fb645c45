// The key log of a filter chain or of a cluster: the secrets of its connections, in the form that Wireshark and others read, for whoever has
// to look into them. Only where the configuration asks for it.

import { appendFile } from 'node:fs';
import type { TLSSocket } from 'node:tls';
import { errorMessage } from '../../../base/errors.ts';
import { type IpNumber, parsePrefix } from '../../../base/ip-number.ts';
import { PrefixTrie } from '../../../base/prefix-trie.ts';
import type { Logger } from '../../../log/index.ts';
import type { CidrRange, TlsKeyLogSettings } from '../../../snapshot/index.ts';

/** Whoever reads the file can read the connections. */
const OWNER_ONLY = 0o600;

interface LoggedEnds {
  readonly localIp: IpNumber | undefined;
  readonly remoteIp: IpNumber | undefined;
}

export class KeyLog {
  readonly #path: string;
  /** Null for all addresses. */
  readonly #local: PrefixTrie<true> | null;
  readonly #remote: PrefixTrie<true> | null;
  readonly #log: Logger;

  constructor({ path, localRanges, remoteRanges }: TlsKeyLogSettings, log: Logger) {
    this.#path = path;
    this.#local = trieOf(localRanges);
    this.#remote = trieOf(remoteRanges);
    this.#log = log;
  }

  /** Writes what the handshake of a connection agrees on, if its addresses are wanted. */
  watch(socket: TLSSocket, { localIp, remoteIp }: LoggedEnds): void {
    if (!has(this.#local, localIp) || !has(this.#remote, remoteIp)) return;
    socket.on('keylog', (line: Buffer) => {
      appendFile(this.#path, line, { mode: OWNER_ONLY }, (error) => {
        if (error !== null) this.#log.warning(`keys are not logged: ${errorMessage(error)}`);
      });
    });
  }
}

function trieOf(ranges: readonly CidrRange[]): PrefixTrie<true> | null {
  if (ranges.length === 0) return null;
  const trie = new PrefixTrie<true>();
  for (const { ip, prefixLength } of ranges) trie.set(parsePrefix(ip, prefixLength)!, true);
  return trie;
}

function has(trie: PrefixTrie<true> | null, ip: IpNumber | undefined): boolean {
  return trie === null || (ip !== undefined && trie.find(ip) === true);
}
