// Which resources of a response are other than in the one before: a server that tells the state of the world tells all of them for one
// that has changed, and that one is to be told first. It decides about nothing but order, so that a short print of each will do. Main
// thread.

export class NewsOfResponses {
  /** By name. */
  readonly #prints = new Map<string, number>();

  /** @returns whether it is other than it was, if it was. */
  note(name: string, bytes: Uint8Array): boolean {
    const print = printOf(bytes);
    if (this.#prints.get(name) === print) return false;
    this.#prints.set(name, print);
    return true;
  }

  /** Nobody wants it any more. */
  forget(name: string): void {
    this.#prints.delete(name);
  }
}

function printOf(bytes: Uint8Array): number {
  let print = bytes.length;
  for (let at = 0; at < bytes.length; at += 1) print = (Math.imul(print, 31) + bytes[at]!) | 0;
  return print;
}
