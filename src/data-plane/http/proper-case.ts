// Names of headers in proper case, as some old programs of HTTP/1 insist on: each word begins in upper case and goes on in
// lower case. For heads that are text by then; nothing but the case of names changes.

const NAMES = /\r\n([^:\r\n]+):/g;
const WORD_STARTS = /(?<![a-z0-9])[a-z]/g;
/** Names that are kept in their form: peers can make up any number of others. */
const MOST_KEPT_NAMES = 256;

export class ProperCase {
  /** As they came to as they go. */
  readonly #names = new Map<string, string>();

  /** @param head latin1, from its first line on. */
  apply(head: string): string {
    return head.replace(NAMES, (_line, name: string) => `\r\n${this.#form(name)}:`);
  }

  #form(name: string): string {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const formed = name.toLowerCase().replace(WORD_STARTS, (letter) => letter.toUpperCase());
    if (this.#names.size < MOST_KEPT_NAMES) this.#names.set(name, formed);
    return formed;
  }
}
