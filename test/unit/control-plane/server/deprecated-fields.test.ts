import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noteDeprecatedFields } from '../../../../src/control-plane/server/deprecated-fields.ts';
import { RUNTIME_STATS } from '../../../../src/stats/index.ts';
import { statsFixture } from '../../../support/stats.ts';

test('deprecated fields are counted in the stats of the runtime, and named in one line of the log', () => {
  const { store } = statsFixture();
  const block = store.scope('runtime.').allocate(RUNTIME_STATS);
  const total = (name: 'deprecated_feature_use' | 'deprecated_feature_seen_since_process_start'): number =>
    store.cells.total(block.cell + RUNTIME_STATS.index[name]);
  const lines: string[] = [];
  const log = { info: (text: string) => void lines.push(text) };
  noteDeprecatedFields(new Map(), store, log);
  assert.deepEqual(lines, []);
  const fields = new Map([
    ['Cluster.hosts', 2],
    ['HeaderMatcher.exact_match', 1],
  ]);
  noteDeprecatedFields(fields, store, log);
  assert.deepEqual(lines, ['deprecated fields are in use: Cluster.hosts (2 times), HeaderMatcher.exact_match']);
  assert.equal(total('deprecated_feature_use'), 3);
  assert.equal(total('deprecated_feature_seen_since_process_start'), 3);
  // Of another bootstrap in its place.
  noteDeprecatedFields(new Map([['Cluster.hosts', 4]]), store, log);
  assert.equal(lines.length, 2);
  assert.equal(total('deprecated_feature_use'), 7);
  assert.equal(total('deprecated_feature_seen_since_process_start'), 7);
});
