// docs/cluster.md is of use only as long as it says of each field what it does.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsWithoutNote, renderClusterDocument } from '../../scripts/cluster-document.ts';
import { protoSchema } from '../../src/config/proto/root.ts';
import { RETRY_CONDITIONS } from '../../src/config/resources/retry-policy.ts';
import { coverageFrom, SUPPORT } from '../../src/config/support/index.ts';

const CLUSTER = 'proxy.config.cluster.v3.Cluster';

test('every field of a cluster that has an effect is explained', () => {
  assert.doesNotThrow(() => renderClusterDocument());
});

test('a field without a note is named, unless it has no effect', () => {
  const schema = protoSchema();
  const messageType = (name: string) => schema.messageType(name);
  const messages = coverageFrom(messageType(CLUSTER), SUPPORT, messageType);
  const cluster = messages.find(({ key }) => key === CLUSTER)!;
  const silent = fieldsWithoutNote(cluster, { [CLUSTER]: { test: '', fields: { name: ['', ''] } } });
  assert.ok(silent.includes(`${CLUSTER}.type`));
  assert.ok(!silent.includes(`${CLUSTER}.name`));
  assert.ok(!silent.includes(`${CLUSTER}.lrs_server`), 'it is ignored with a warning');
});

test('every condition of retries is explained', () => {
  const document = renderClusterDocument();
  const missing = RETRY_CONDITIONS.filter((name) => !document.includes(`\`${name}\``));
  assert.deepEqual(missing, []);
});

test('the values of an enum are listed', () => {
  assert.match(renderClusterDocument(), /\| metadata_fallback_policy \|.*`METADATA_NO_FALLBACK`, `FALLBACK_LIST`/);
});
