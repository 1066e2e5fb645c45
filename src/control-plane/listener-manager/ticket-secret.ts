// What random keys of session tickets are made of. A process that takes over from another gets it from there, so that clients
// resume their sessions; nobody else does. It stands in no snapshot, dump or log: workers get the keys only.

import { hkdfSync, randomBytes } from 'node:crypto';
import type { FilterChainMatch } from '../../snapshot/index.ts';

const SECRET_BYTES = 32;
/** As Node takes them: name, HMAC key and cipher key. */
const KEY_BYTES = 48;
const NO_SALT = new Uint8Array();

export class TicketSecret {
  #bytes: Uint8Array | null;

  /** @param inherited from the process before; null where there was none, or none that knew of it. */
  constructor(inherited: Uint8Array | null = null) {
    this.#bytes = inherited?.length === SECRET_BYTES ? inherited : null;
  }

  /** For the process that takes over. */
  get bytes(): Uint8Array {
    this.#bytes ??= randomBytes(SECRET_BYTES);
    return this.#bytes;
  }

  /**
   * A key of one filter chain's own, the same for as long as it is chosen alike.
   * @param listener what distinguishes it and stays; a name may be made up anew by each process.
   * @param choice what the chain is chosen by: its criteria, or its name in a decision tree; null for the default one.
   */
  keyOf(listener: string, choice: FilterChainMatch | string | null): Uint8Array {
    return new Uint8Array(hkdfSync('sha256', this.bytes, NO_SALT, JSON.stringify([listener, choice]), KEY_BYTES));
  }
}
