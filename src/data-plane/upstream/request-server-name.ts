// Names that TLS to a cluster's hosts goes by, as requests bring them themselves.

import { isIP } from 'node:net';
import type { RequestServerName as Settings } from '../../snapshot/index.ts';
import { TextHead } from '../http/text-head.ts';

/** Of a name in a handshake (RFC 6066 section 3). */
const MAX_NAME_BYTES = 255;
const PORT = /:\d*$/;
/** Wanted of a certificate where a request brings no name that one can be for: the name of the root, which none has. */
const NOBODY = '.';

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
    const fields = TextHead.of(head);
    const name = hostOf(fields.headerByName(this.#header) || fields.headerByName('host') || '');
    const isName = name !== '' && name.length <= MAX_NAME_BYTES;
    // No server is asked for an address, but a certificate may be for one.
    const sentName = this.#isSent && isName && isIP(name) === 0 ? name : '';
    if (!this.#isVerified) return { sentName, verifiedName: '' };
    // Empty would be any certificate of the authority.
    return { sentName, verifiedName: isName ? name : NOBODY };
  }
}

/** Without a port, and without the brackets of an IPv6 address. */
function hostOf(authority: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(authority);
  return (bracketed?.[1] ?? authority.replace(PORT, '')).toLowerCase();
}
