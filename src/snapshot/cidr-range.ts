// Addresses with the same first bits, as settings name them.

/** A block of addresses; the literal may have bits behind the prefix. */
export interface CidrRange {
  readonly ip: string;
  /** 0 to 32 or 128. */
  readonly prefixLength: number;
}
