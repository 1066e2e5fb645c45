// The query of a request target, parameter by parameter, for filters that change some of them: the others stay as they
// came.

/** What ends a name or a value, or may not stand in a request line. */
const UNSAFE = /[^\w\-.~!$'()*,;:@/?]/g;

interface Parameter {
  /** Decoded. */
  readonly name: string;
  readonly text: string;
}

export class QueryParameters {
  readonly #path: string;
  #parameters: readonly Parameter[];

  /** @param target path and query, byte text. */
  constructor(target: string) {
    const mark = target.indexOf('?');
    this.#path = mark === -1 ? target : target.slice(0, mark);
    const texts = mark === -1 ? [] : target.slice(mark + 1).split('&');
    const there = texts.filter((text) => text !== '');
    this.#parameters = there.map((text) => ({ name: decode(text.split('=', 1)[0]!), text }));
  }

  has(name: string): boolean {
    return this.#parameters.some((parameter) => parameter.name === name);
  }

  remove(name: string): void {
    this.#parameters = this.#parameters.filter((parameter) => parameter.name !== name);
  }

  /** Behind the others. Byte text. */
  add(name: string, value: string): void {
    this.#parameters = [...this.#parameters, { name, text: `${encode(name)}=${encode(value)}` }];
  }

  /** Path and query. */
  target(): string {
    if (this.#parameters.length === 0) return this.#path;
    return `${this.#path}?${this.#parameters.map(({ text }) => text).join('&')}`;
  }
}

/** Byte text; what is no escape stays. */
function decode(text: string): string {
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

function encode(text: string): string {
  return text.replace(UNSAFE, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
}
