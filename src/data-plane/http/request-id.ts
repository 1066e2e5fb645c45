// Identifiers of requests: random UUIDs (RFC 9562, version 4), written as the header line that carries them. No string
// is made: building one and copying it costs seven times as much as writing its digits where they belong.

import { randomFillSync } from 'node:crypto';

const NAME = 'x-request-id: ';
const UUID_BYTES = 16;
const UUID_CHARACTERS = 36;
/** Random numbers are cheap by the page, not by the piece. */
const POOL_BYTES = 256 * UUID_BYTES;
const HYPHEN = 0x2d;

const DIGITS = '0123456789abcdef';
const HIGH_DIGIT = Uint8Array.from({ length: 256 }, (_, byte) => DIGITS.charCodeAt(byte >> 4));
const LOW_DIGIT = Uint8Array.from({ length: 256 }, (_, byte) => DIGITS.charCodeAt(byte & 15));

/** One per connection manager: no state but the numbers at hand. */
export class RequestIds {
  readonly #pool = Buffer.allocUnsafeSlow(POOL_BYTES);
  #used = POOL_BYTES;
  readonly #line = Buffer.from(NAME + '-'.repeat(UUID_CHARACTERS), 'latin1');

  /** The header line of a new identifier, without its end; borrowed until the next call. */
  nextLine(): Buffer {
    const pool = this.#pool;
    if (this.#used === POOL_BYTES) {
      randomFillSync(pool);
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += UUID_BYTES;
    pool[from + 6] = (pool[from + 6]! & 0x0f) | 0x40;
    pool[from + 8] = (pool[from + 8]! & 0x3f) | 0x80;
    const line = this.#line;
    let at = NAME.length;
    for (let index = 0; index < UUID_BYTES; index += 1) {
      if (index === 4 || index === 6 || index === 8 || index === 10) line[at++] = HYPHEN;
      const byte = pool[from + index]!;
      line[at++] = HIGH_DIGIT[byte]!;
      line[at++] = LOW_DIGIT[byte]!;
    }
    return line;
  }
}
