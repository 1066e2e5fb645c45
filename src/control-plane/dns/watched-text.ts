// Text of a file that is read again when the file has changed, as an operator expects of /etc/hosts and its like.

import { stat } from 'node:fs/promises';
import { readWholeFile } from '../../base/file-bytes.ts';

/** Some 300,000 names: more than the longest lists that people block hosts by. */
export const MAX_WATCHED_BYTES = 16 * 1024 * 1024;

/** Told once of each state of a file that cannot be read, in a sentence about it. */
export type ReportUnread = (sentence: string) => void;

export class WatchedText<Content> {
  readonly #path: string;
  readonly #parse: (text: string) => Content;
  readonly #report: ReportUnread;
  #content: Content;
  /** Time and size of what was read last; undefined where nothing was. */
  #version: string | undefined;
  /** Why it could not be read the last time; empty where it could. */
  #problem = '';

  /** @param parse is given the empty text where there is no file. */
  constructor(path: string, parse: (text: string) => Content, report: ReportUnread = () => {}) {
    this.#path = path;
    this.#parse = parse;
    this.#report = report;
    this.#content = parse('');
  }

  async read(): Promise<Content> {
    try {
      const { mtimeMs, size } = await stat(this.#path);
      const version = `${mtimeMs}/${size}`;
      if (version !== this.#version) this.#take(version);
    } catch (error) {
      this.#onError(error as NodeJS.ErrnoException);
    }
    return this.#content;
  }

  #take(version: string): void {
    const { bytes, problem, error } = readWholeFile(this.#path, MAX_WATCHED_BYTES);
    if (error !== undefined) this.#onError(error);
    else if (problem !== undefined) this.#note(problem);
    else {
      this.#content = this.#parse(bytes.toString('latin1'));
      this.#version = version;
      this.#problem = '';
    }
  }

  #onError({ code, message }: NodeJS.ErrnoException): void {
    if (code !== 'ENOENT') {
      this.#note(`cannot be read (${code ?? message})`);
      return;
    }
    // Without the file what was read no longer holds.
    this.#content = this.#parse('');
    this.#version = undefined;
    this.#problem = '';
  }

  /** Out of descriptors or the like: what was read before still holds, and the file is looked at again next time. */
  #note(problem: string): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#report(`${this.#path} ${problem}: what was read of it before still holds`);
  }
}
