// Names that TLS to a cluster's hosts goes by, as requests bring them themselves.

import { isIP } from 'node:net';
import type { RequestServerName as Settings } from '../../snapshot/index.ts';
import { TextHead } from '../http/text-head.ts';

/** Of a name in a handshake (RFC 6066 section 3). */
const MAX_NAME_BYTES = 255;
const PORT = /:\d*$/;

/** What servers are asked for, and what their certificates have to be for; empty for what the configuration says. */
export interface ServerNames {
  readonly sentName: string;
  readonly verifiedName: string;
}

export const NO_NAMES: ServerNames = { sentName: '', verifiedName: '' };

export class RequestServerName {
  readonly #header: string;
  readonly #isSent: boolean;
  readonly #isVerified: boolean;

  constructor({ header, isSent, isVerified }: Settings) {
    const isHost = header === '' || header === ':authority' || header === 'host';
    this.#header = isHost ? 'host' : header;
    this.#isSent = isSent;
    this.#isVerified = isVerified;
  }

  /** @param head of the request as it is sent. */
  of(head: string): ServerNames {
    const value = TextHead.of(head).headerByName(this.#header) ?? '';
    const name = hostOf(value);
    if (name.length > MAX_NAME_BYTES) return NO_NAMES;
    // No server is asked for an address, but a certificate may be for one.
    return { sentName: this.#isSent && isIP(name) === 0 ? name : '', verifiedName: this.#isVerified ? name : '' };
  }
}

/** Without a port, and without the brackets of an IPv6 address. */
function hostOf(authority: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(authority);
  return (bracketed?.[1] ?? authority.replace(PORT, '')).toLowerCase();
}
