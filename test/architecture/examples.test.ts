// An example that no test starts is a promise that nobody keeps.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';

const TESTS = ['test/integration/examples', 'test/browser'];

test('every example is started by a test', () => {
  const examples = readdirSync(path.join(PACKAGE_ROOT, 'examples')).filter((file) => file.endsWith('.yaml'));
  const texts = TESTS.flatMap((folder) => {
    const place = path.join(PACKAGE_ROOT, folder);
    return readdirSync(place).map((file) => readFileSync(path.join(place, file), 'utf8'));
  });
  const untested = examples.filter((example) => !texts.some((text) => text.includes(`'${example}'`)));
  assert.deepEqual(untested, []);
});
