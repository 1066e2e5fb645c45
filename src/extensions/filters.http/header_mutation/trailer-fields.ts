// Trailers as the edits of headers see them.

import type { EditableHead, Trailers } from '../../../data-plane/index.ts';
import type { PreparedLines } from '../../../wasm/http1.ts';

/** What a value may not hold. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/;

export class TrailerFields implements EditableHead {
  readonly #trailers: Trailers;

  constructor(trailers: Trailers) {
    this.#trailers = trailers;
  }

  hasField(name: string): boolean {
    return this.#trailers.get(name) !== undefined;
  }

  removeField(name: string): void {
    this.#trailers.remove(name);
  }

  headerByName(name: string): string | undefined {
    return this.#trailers.get(name);
  }

  entries(): readonly (readonly [name: string, value: string])[] {
    return this.#trailers.entries();
  }

  /** A value that cannot stand in a line is left out. The configuration has let no name through that may not be a trailer. */
  append(name: string, value: string): void {
    if (!UNSAFE.test(value)) this.#trailers.append(name, value);
  }

  appendPrepared({ text }: PreparedLines): void {
    for (const line of text.split('\r\n')) {
      const colon = line.indexOf(':');
      if (colon > 0) this.append(line.slice(0, colon), line.slice(colon + 1).trim());
    }
  }
}
