// The key log of a filter chain or of a cluster: the secrets of its connections, in the form that Wireshark and others read, for whoever has
// to look into them. Only where the configuration asks for it.
//
// Lines are written while the thread goes on. No reader of a pipe is waited for, and no more lines than a bound wait for a disk: what
// does not get there is lost, which is said once until lines are written again.

import { appendFile, constants } from 'node:fs';
import type { TLSSocket } from 'node:tls';
import { errorMessage } from '../../../base/errors.ts';
import { type IpNumber, parsePrefix } from '../../../base/ip-number.ts';
import { PrefixTrie } from '../../../base/prefix-trie.ts';
import type { Logger } from '../../../log/index.ts';
import type { CidrRange, TlsKeyLogSettings } from '../../../snapshot/index.ts';

/** Whoever reads the file can read the connections. */
const OWNER_ONLY = 0o600;
/** A pipe that nobody reads cannot be opened; one that is full takes nothing. */
const FLAGS = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NONBLOCK;
const HOW = { mode: OWNER_ONLY, flag: FLAGS as unknown as string };
/** Some two hundred handshakes. */
const MAX_WAITING_LINES = 1000;

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
  #waitingLines = 0;
  #isFailing = false;

  constructor({ path, localRanges, remoteRanges }: TlsKeyLogSettings, log: Logger) {
    this.#path = path;
    this.#local = trieOf(localRanges);
    this.#remote = trieOf(remoteRanges);
    this.#log = log;
  }

  /** Those that the file has not taken yet. */
  get waitingLines(): number {
    return this.#waitingLines;
  }

  /** Writes what the handshake of a connection agrees on, if its addresses are wanted. */
  watch(socket: TLSSocket, { localIp, remoteIp }: LoggedEnds): void {
    if (!has(this.#local, localIp) || !has(this.#remote, remoteIp)) return;
    socket.on('keylog', (line: Buffer) => this.#write(line));
  }

  #write(line: Buffer): void {
    if (this.#waitingLines === MAX_WAITING_LINES) {
      this.#fail(`${this.#path} does not take them as fast as they come`);
      return;
    }
    this.#waitingLines += 1;
    appendFile(this.#path, line, HOW, (error) => {
      this.#waitingLines -= 1;
      if (error === null) this.#isFailing = false;
      else this.#fail(errorMessage(error));
    });
  }

  #fail(reason: string): void {
    if (!this.#isFailing) this.#log.warning(`keys are not logged: ${reason}`);
    this.#isFailing = true;
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
