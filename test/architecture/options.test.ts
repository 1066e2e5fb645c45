// Every option of the command line has a test that gives it to the running program: what parsing makes of one says nothing of
// what it does.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { OPTIONS } from '../../src/cli/options.ts';

const FROM_OUTSIDE = path.join(PACKAGE_ROOT, 'test/integration');

/** Words of arguments: `'--name'`, `'--name=value'`, `"-n"`; a name within a sentence is none. */
function givenIn(text: string): readonly string[] {
  return [...text.matchAll(/['"`](--?[a-z][\w-]*)(?:=[^'"`]*)?['"`]/g)].map(([, word]) => word!);
}

it('every option is given to the running program by a test', () => {
  const files = readdirSync(FROM_OUTSIDE, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const given = new Set(files.flatMap((file) => givenIn(readFileSync(path.join(FROM_OUTSIDE, file), 'utf8'))));
  const untried = OPTIONS.filter(
    (option) => !given.has(`--${option.name}`) && !('flag' in option && given.has(`-${option.flag}`)),
  );
  assert.deepEqual(
    untried.map(({ name }) => name),
    [],
  );
});

it('a name in a sentence is not an option that was given', () => {
  const text = "runWeir(['--mode=validate', '-c', file, '--base-id', '3']); it('--mode is one', 'without --help')";
  assert.deepEqual(givenIn(text), ['--mode', '-c', '--base-id']);
});
