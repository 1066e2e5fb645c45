// Files that have lines for debugging log by a logger that knows its file: with --enable-fine-grain-logging and another file's level
// lowered, what is off here costs a comparison, and no search for the caller.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { readModules } from '../../scripts/architecture/modules.ts';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';

const LOGS_FOR_DEBUGGING = /\.(?:debug|trace)\(/;
const KNOWN_FILE = /(?:\bofFile\(|\bconst FILE = )'([^']+)'/;

it('a file that logs for debugging has a logger of its own, by its name', () => {
  const files = [...readModules(PACKAGE_ROOT).values()].filter(
    ({ path: file, code }) => LOGS_FOR_DEBUGGING.test(code) && !file.startsWith('src/log/'),
  );
  assert.ok(files.length > 10, `${files.length} files`);
  const names = files.map(({ path: file }) => [
    file,
    KNOWN_FILE.exec(readFileSync(path.join(PACKAGE_ROOT, file), 'utf8'))?.[1],
  ]);
  assert.deepEqual(
    names.filter(([file, name]) => file !== name),
    [],
  );
});
