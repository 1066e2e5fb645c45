// Levels of single source files (--enable-fine-grain-logging), by patterns in the order in which they were given: the first
// that matches counts, and the default where none does. A pattern with a slash is held against the path, any other against
// the file's name, both without extension; `*` stands for any text, slashes included, and `?` for one character.

import { type LogLevel, levelNumber } from '../base/log-levels.ts';

export interface FileLevel {
  readonly pattern: string;
  readonly level: LogLevel;
}

export class FileLevels {
  readonly rules: readonly FileLevel[];
  /** The most talkative of all: a message below it is off whichever file it comes from. */
  readonly lowest: LogLevel;
  readonly #default: LogLevel;
  readonly #levels = new Map<string, LogLevel>();

  constructor(defaultLevel: LogLevel, rules: readonly FileLevel[]) {
    this.rules = rules;
    this.#default = defaultLevel;
    this.lowest = rules.reduce(
      (lowest, { level }) => (levelNumber(level) < levelNumber(lowest) ? level : lowest),
      defaultLevel,
    );
  }

  /** @param file path relative to the package, `src/log/logger.ts`. */
  levelOf(file: string): LogLevel {
    let level = this.#levels.get(file);
    if (level === undefined) {
      level = this.rules.find(({ pattern }) => matchesFile(pattern, file))?.level ?? this.#default;
      this.#levels.set(file, level);
    }
    return level;
  }
}

export function matchesFile(pattern: string, file: string): boolean {
  const path = withoutExtension(file);
  const plain = withoutExtension(pattern);
  return matchesGlob(plain, plain.includes('/') ? path : path.slice(path.lastIndexOf('/') + 1));
}

/** A path may be given as it is listed. */
function withoutExtension(file: string): string {
  return file.replace(/\.ts$/, '');
}

/** In at most the product of both lengths: after a mismatch only the last `*` can take more. */
function matchesGlob(pattern: string, text: string): boolean {
  let at = 0;
  let star = -1;
  let taken = 0;
  let index = 0;
  while (index < text.length) {
    if (at < pattern.length && pattern[at] === '*') {
      star = at;
      at += 1;
      taken = index;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[index])) {
      at += 1;
      index += 1;
    } else if (star !== -1) {
      at = star + 1;
      taken += 1;
      index = taken;
    } else return false;
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}
