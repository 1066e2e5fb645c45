// Text of a file that is read again when the file has changed, as an operator expects of /etc/hosts and its like.

import { readFile, stat } from 'node:fs/promises';

export class WatchedText<Content> {
  readonly #path: string;
  readonly #parse: (text: string) => Content;
  #content: Content;
  /** Time and size of what was read last; undefined where nothing was. */
  #version: string | undefined;

  /** @param parse is given the empty text where there is no file. */
  constructor(path: string, parse: (text: string) => Content) {
    this.#path = path;
    this.#parse = parse;
    this.#content = parse('');
  }

  async read(): Promise<Content> {
    try {
      const { mtimeMs, size } = await stat(this.#path);
      const version = `${mtimeMs}/${size}`;
      if (version !== this.#version) {
        this.#content = this.#parse(await readFile(this.#path, 'latin1'));
        this.#version = version;
      }
    } catch (error) {
      // Out of descriptors or the like: what was read before still holds, and the file is looked at again next time.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return this.#content;
      // Without the file it no longer does.
      this.#content = this.#parse('');
      this.#version = undefined;
    }
    return this.#content;
  }
}
