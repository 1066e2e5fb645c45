// Headers within a head as it was written: byte text of lines that end with CRLF. Names come in any case, so they are
// looked for in a copy in lower case, made at the first question; the values are those of the original.

const LINE_END = '\r\n';
const OTHER_SPELLINGS: readonly (readonly [string, string])[] = [
  ['x-envoy-', 'x-proxy-'],
  ['x-proxy-', 'x-envoy-'],
];

export class HeadText {
  readonly text: string;
  readonly #lower: string;

  constructor(text: string) {
    this.text = text;
    this.#lower = text.toLowerCase();
  }

  /** First value of a header; a proxy's own header is found under both spellings of its name. @param name lower case. */
  header(name: string): string | undefined {
    const value = this.#find(name);
    if (value !== undefined) return value;
    for (const [prefix, other] of OTHER_SPELLINGS) {
      if (name.startsWith(prefix)) return this.#find(other + name.slice(prefix.length));
    }
    return undefined;
  }

  /** The first line's word, 0 or 1. */
  startWord(index: 0 | 1): string {
    const first = this.text.indexOf(' ');
    return index === 0 ? this.text.slice(0, first) : this.text.slice(first + 1, this.text.indexOf(' ', first + 1));
  }

  #find(name: string): string | undefined {
    const at = this.#lower.indexOf(`${LINE_END}${name}:`);
    if (at === -1) return undefined;
    const start = at + LINE_END.length + name.length + 1;
    return this.text.slice(start, this.text.indexOf(LINE_END, start)).trim();
  }
}
