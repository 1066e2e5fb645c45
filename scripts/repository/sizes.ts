// Files that have grown past what reads well in one sitting. A question to the author, not a fault.

import type { RepositoryFile } from './files.ts';

export const LINES_TO_ASK_AT = 500;
const COUNTED = /^(?:src|assembly|test|bench|scripts)\/.*\.(?:ts|mjs)$/;

export function longFileRemarks(files: readonly RepositoryFile[]): string[] {
  return files
    .filter(({ path }) => COUNTED.test(path) && !path.includes('/generated/'))
    .map((file) => ({ path: file.path, lines: file.text.split('\n').length - 1 }))
    .filter(({ lines }) => lines >= LINES_TO_ASK_AT)
    .map(({ path, lines }) => `${path} has ${lines} lines: which second idea moved in?`);
}
