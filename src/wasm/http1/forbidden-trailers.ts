// Fields that may not come as trailers (RFC 9110 section 6.5.1), recognized one byte at a time: a name can be cut
// anywhere by the buffers that it arrives in, and nothing of it is kept.

import { FORBIDDEN_TRAILERS } from '../../base/forbidden-trailers.ts';

const ALL = 2 ** FORBIDDEN_TRAILERS.length - 1;
const LONGEST = Math.max(...FORBIDDEN_TRAILERS.map((name) => name.length));

/** MATCHING[position * 256 + byte]: one bit per name that has this byte, in either case, at this position. */
const MATCHING = new Int32Array(LONGEST * 256);
/** ENDING[length]: one bit per name of this length. */
const ENDING = new Int32Array(LONGEST + 1);
FORBIDDEN_TRAILERS.forEach((name, bit) => {
  for (let position = 0; position < name.length; position += 1) {
    MATCHING[position * 256 + name.charCodeAt(position)]! |= 1 << bit;
    MATCHING[position * 256 + name.toUpperCase().charCodeAt(position)]! |= 1 << bit;
  }
  ENDING[name.length]! |= 1 << bit;
});

/** Which of the names the bytes so far may still become. */
export class ForbiddenNameMatch {
  #candidates = 0;
  #length = 0;

  begin(): void {
    this.#candidates = ALL;
    this.#length = 0;
  }

  add(byte: number): void {
    this.#candidates = this.#length < LONGEST ? this.#candidates & MATCHING[this.#length * 256 + byte]! : 0;
    this.#length += 1;
  }

  /** True when the bytes since begin() are exactly one of the names. */
  isForbidden(): boolean {
    return this.#candidates !== 0 && (this.#candidates & ENDING[this.#length]!) !== 0;
  }
}
