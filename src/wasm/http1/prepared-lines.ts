// Constant header lines, placed in the codec's memory once and appended to any number of heads by address.
// The region behaves as a cache: when it is full it is started afresh with the next head, and lines whose
// generation has passed are written again when next used. So dropped configurations need no clean-up.

import { PREPARED, PREPARED_BYTES } from '../../../assembly/layout/http1.ts';
import { WeirError } from '../../base/errors.ts';
import type { CodecMemory } from './memory.ts';

const LINE = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/;

/**
 * One of 32 bits for the name of a header line, whatever its case: two names that have different ones are different.
 * @param first its first character.
 */
export function nameBit(first: number, length: number): number {
  // Small letters differ from capital ones by this bit.
  return 1 << (((first | 0x20) ^ length) & 31);
}

/** Lines ready to append: make them when a snapshot arrives, use them per message. Bound to no codec. */
export class PreparedLines {
  /** The lines with their CRLFs. */
  readonly text: string;
  readonly lineCount: number;
  /** A bit for each of their names. */
  readonly nameBits: number;
  /** Where and when a region placed the text; only PreparedRegion writes these. */
  address = 0;
  generation = 0;
  owner: PreparedRegion | undefined = undefined;

  /**
   * @param lines  complete header lines without line ends, as latin1 text: `x-forwarded-proto: https`
   * @throws WeirError WEIR_HTTP1_HEADER_LINE for anything that is not exactly one well-formed header line.
   */
  constructor(lines: readonly string[]) {
    for (const line of lines) {
      if (!LINE.test(line)) {
        throw new WeirError('WEIR_HTTP1_HEADER_LINE', `${JSON.stringify(line)} is not a header line`);
      }
    }
    this.text = lines.map((line) => `${line}\r\n`).join('');
    this.lineCount = lines.length;
    this.nameBits = lines.reduce((bits, line) => bits | nameBit(line.charCodeAt(0), line.indexOf(':')), 0);
  }
}

export class PreparedRegion {
  readonly #memory: CodecMemory;
  #used = 0;
  #generation = 1;
  #full = false;

  constructor(memory: CodecMemory) {
    this.#memory = memory;
  }

  /** True when some lines found no room; restart() then helps. */
  get isFull(): boolean {
    return this.#full;
  }

  /** Starts afresh. Only while no edit list holds an address of this region. */
  restart(): void {
    this.#full = false;
    this.#used = 0;
    this.#generation += 1;
  }

  /** Address of the text in this memory, or 0 when it finds no room before the next restart. */
  place(lines: PreparedLines): number {
    if (lines.owner === this && lines.generation === this.#generation) return lines.address;
    const size = lines.text.length;
    if (this.#used + size > PREPARED_BYTES) {
      this.#full = true;
      return 0;
    }
    lines.address = PREPARED + this.#used;
    lines.generation = this.#generation;
    lines.owner = this;
    this.#memory.bytes.write(lines.text, lines.address, 'latin1');
    this.#used += size;
    return lines.address;
  }
}
