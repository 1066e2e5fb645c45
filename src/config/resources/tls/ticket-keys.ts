// TlsSessionTicketKeys messages → the keys of session tickets.

import { hkdfSync } from 'node:crypto';
import type { Conversion } from '../conversion.ts';
import type { DataSource, TlsSessionTicketKeys } from '../messages.ts';
import { convertSource, readSource, sourceName } from './source.ts';

/** Name, HMAC key and cipher key, as Node takes them. */
const TICKET_KEY_BYTES = 48;
/** Of a key in a file, as other proxies write it. */
const FILE_KEY_BYTES = 80;

/** @returns those without a fault. */
export function convertTicketKeys(
  { keys }: TlsSessionTicketKeys,
  at: string,
  conversion: Conversion,
): readonly Uint8Array[] {
  return keys
    .map((key, index) => readTicketKey(key, `${at}.keys[${index}]`, conversion))
    .filter((key) => key !== undefined);
}

/**
 * Node's tickets have room for shorter keys than those in files: the parts are derived from all of it, so that proxies with the
 * same file take each other's tickets.
 */
function readTicketKey(key: DataSource, at: string, conversion: Conversion): Uint8Array | undefined {
  const source = convertSource(key, at, conversion);
  const bytes = readSource(source, at, conversion.faults);
  if (bytes === null) return undefined;
  if (bytes.length === FILE_KEY_BYTES) {
    return new Uint8Array(hkdfSync('sha256', bytes, '', 'session ticket key', TICKET_KEY_BYTES));
  }
  conversion.faults.error(
    at,
    `${sourceName(source)} has ${bytes.length} bytes; a session ticket key has ${FILE_KEY_BYTES}`,
  );
  return undefined;
}
