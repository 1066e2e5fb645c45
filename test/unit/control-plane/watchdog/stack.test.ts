import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stackOf } from '../../../../src/control-plane/watchdog/stack.ts';

/** A profile with a chain of functions below the root, `samples` by their names. */
function profile(chain: readonly string[], samples: readonly string[]): string {
  const all = ['(root)', ...chain];
  const nodes = all.map((functionName, index) => ({
    id: index + 1,
    callFrame: { functionName, url: functionName.startsWith('(') ? '' : 'node:fs', lineNumber: index, columnNumber: 0 },
    children: index + 1 < all.length ? [index + 2] : [],
  }));
  return JSON.stringify({ nodes, samples: samples.map((name) => all.indexOf(name) + 1), timeDeltas: [] });
}

test('a thread is where most samples fell, innermost first', () => {
  const chain = ['outer', 'middle', 'inner'];
  const inner = ['    at inner (node:fs:4)', '    at middle (node:fs:3)', '    at outer (node:fs:2)'];
  assert.equal(stackOf(profile(chain, ['middle', 'inner', 'inner'])), inner.join('\n'));
  assert.equal(stackOf(profile(chain, ['middle', 'middle', 'inner'])), inner.slice(1).join('\n'));
});

test('what is no place in a program does not count, and may be all there is', () => {
  assert.equal(
    stackOf(profile(['outer', '(program)'], ['(program)', '(program)', 'outer'])),
    '    at outer (node:fs:2)',
  );
  assert.equal(stackOf(profile(['(idle)'], ['(idle)', '(root)'])), undefined);
  assert.equal(stackOf(profile([], [])), undefined);
});
