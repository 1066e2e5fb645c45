// Splits what clients stream: the elements of a JSON array, whatever pieces it comes in.

const [OPEN_LIST, CLOSE_LIST, OPEN_MAP, CLOSE_MAP] = [0x5b, 0x5d, 0x7b, 0x7d];
const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** @throws SyntaxError for what is no array. */
export class JsonArrayReader {
  /** Of the element at hand. */
  #parts: Buffer[] = [];
  #bytes = 0;
  #state: 'before' | 'within' | 'behind' = 'before';
  #depth = 0;
  #isText = false;
  #isEscaped = false;
  /** A comma promises another element. */
  #awaitsElement = false;

  /** Bytes that are kept. */
  get heldBytes(): number {
    return this.#bytes;
  }

  /** @returns the elements that end in these bytes, as text. */
  read(bytes: Buffer): string[] {
    const found: string[] = [];
    let start = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (this.#state === 'within' && (this.#isText || this.#depth > 0 || !isBreak(byte))) {
        this.#step(byte);
        continue;
      }
      if (this.#state === 'within') {
        this.#keep(bytes.subarray(start, at));
        this.#take(found, byte);
      } else if (!SPACES.has(byte)) {
        if (this.#state === 'behind' || byte !== OPEN_LIST) throw new SyntaxError('a JSON array was expected');
        this.#state = 'within';
      }
      start = at + 1;
    }
    if (this.#state === 'within') this.#keep(bytes.subarray(start));
    return found;
  }

  /** The body ends here. */
  end(): void {
    if (this.#state !== 'behind') throw new SyntaxError('the JSON array has no end');
  }

  #step(byte: number): void {
    if (this.#isText) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#isText = false;
    } else if (byte === QUOTE) this.#isText = true;
    else if (byte === OPEN_LIST || byte === OPEN_MAP) this.#depth += 1;
    else if (byte === CLOSE_LIST || byte === CLOSE_MAP) this.#depth -= 1;
  }

  #take(found: string[], byte: number): void {
    const text = Buffer.concat(this.#parts).toString().trim();
    this.#parts = [];
    this.#bytes = 0;
    const isLast = byte === CLOSE_LIST;
    if (text === '' && (!isLast || this.#awaitsElement)) throw new SyntaxError('a JSON array lacks an element');
    if (text !== '') found.push(text);
    this.#awaitsElement = byte === COMMA;
    if (isLast) this.#state = 'behind';
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#parts.push(Buffer.from(bytes));
    this.#bytes += bytes.length;
  }
}

function isBreak(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_LIST;
}
