// Raised inside the parsers of this folder and caught at their one door (source.ts), where it becomes a
// fault. Syntax can only be read up to its first error, so an exception is the simplest way out of the
// recursion; it never leaves the folder.

export class SyntaxFault extends Error {
  override readonly name = 'SyntaxFault';
  /** Character offset of the error. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** Collections inside collections; real configurations stay below 40. */
export const MAX_DEPTH = 100;

export function tooDeep(offset: number): SyntaxFault {
  return new SyntaxFault(`nested deeper than ${MAX_DEPTH} levels`, offset);
}
