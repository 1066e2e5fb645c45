// Keys of session tickets. Node documents one key for each context; where there are several, new tickets get the first, and those
// of the others are taken and renewed, which Node's contexts can do by a callback that it has never documented. A test fails where
// a release of it cannot.

import { constants, randomBytes } from 'node:crypto';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';

/** Of the name, of the HMAC key and of the cipher key. */
const PART_BYTES = 16;
const UNKNOWN = 0;
const TAKEN = 1;
const TAKEN_AND_RENEWED = 2;

interface TicketContext {
  enableTicketKeyCallback?(): void;
  /** Node looks at the keys in the answer, 16 bytes each, whatever its number says: without them the process ends. */
  onticketkeycallback: (name: Buffer, iv: Buffer, isNew: boolean) => readonly (number | Uint8Array)[];
}

/** @param keys of three parts each; null for connections that are not resumed. */
export function withTicketKeys(keys: readonly Uint8Array[] | null, options: SecureContextOptions): SecureContext {
  const [first, ...others] = keys ?? [];
  if (first === undefined) {
    const secureOptions = (options.secureOptions ?? 0) | constants.SSL_OP_NO_TICKET;
    return createSecureContext({ ...options, secureOptions });
  }
  const made = createSecureContext({ ...options, ticketKeys: Buffer.from(first) });
  const context = made.context as TicketContext;
  if (others.length === 0 || context.enableTicketKeyCallback === undefined) return made;
  const newest = partsOf(first);
  const older = others.map(partsOf);
  context.onticketkeycallback = (name, _iv, isNew) => {
    if (isNew) return [TAKEN, newest.hmac, newest.cipher, newest.name, randomBytes(PART_BYTES)];
    if (name.equals(newest.name)) return [TAKEN, newest.hmac, newest.cipher];
    const known = older.find((key) => name.equals(key.name));
    return [known === undefined ? UNKNOWN : TAKEN_AND_RENEWED, (known ?? newest).hmac, (known ?? newest).cipher];
  };
  context.enableTicketKeyCallback();
  return made;
}

function partsOf(key: Uint8Array): { readonly name: Buffer; readonly hmac: Buffer; readonly cipher: Buffer } {
  const part = (index: number): Buffer => Buffer.from(key.subarray(index * PART_BYTES, (index + 1) * PART_BYTES));
  return { name: part(0), hmac: part(1), cipher: part(2) };
}
