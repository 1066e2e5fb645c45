import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { SourceReport } from '../../../src/control-plane/index.ts';
import { sourceTroubles } from '../../../src/process/source-troubles.ts';

function source(fields: Partial<SourceReport>): SourceReport {
  return {
    kind: 'stream',
    name: 'control',
    isConnected: false,
    sinceMs: 0,
    identifier: '',
    complaint: '',
    unaskedTypes: [],
    types: [],
    ...fields,
  };
}

it('a source that is not there is a trouble, once for all that ask it, and one that has not been asked yet is none', () => {
  const lost = { complaint: 'management server 10.0.0.1:80 of cluster control: ECONNREFUSED' };
  const sources = [
    source(lost),
    source({ ...lost, kind: 'polls' }),
    source({ isConnected: true, complaint: 'a response cannot be read' }),
    source({}),
    source({ kind: 'file', name: '/etc/weir/clusters.yaml', complaint: 'no such file' }),
  ];
  assert.deepEqual(sourceTroubles(sources), [
    { isGrave: false, text: lost.complaint },
    { isGrave: false, text: 'resources of /etc/weir/clusters.yaml are not read: no such file' },
  ]);
});
