// Updates of clusters on their way to the workers.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { UpdateQueue } from '../../../../src/control-plane/workers/update-queue.ts';
import {
  type ClusterSnapshot,
  type ClusterUpdate,
  type HostsUpdate,
  type MainToWorker,
  unpackCluster,
} from '../../../../src/snapshot/index.ts';
import { NO_FAULTS } from '../../../support/faults.ts';

const MOST = 64;

function clusterNamed(name: string): ClusterSnapshot {
  return { settings: { name }, hosts: [] } as unknown as ClusterSnapshot;
}

function updatesOf(message: MainToWorker): readonly ClusterUpdate[] {
  return message.type === 'updates' ? message.updates : [message as ClusterUpdate];
}

function told(update: ClusterUpdate): string {
  if (update.type === 'cluster') return `${update.generation} cluster ${unpackCluster(update.cluster).settings.name}`;
  if (update.type === 'hosts') return `${update.generation} hosts ${update.update.cluster}`;
  return `${update.generation} removed ${update.name}`;
}

describe('updates for workers', () => {
  it('arrive in their order, soon, and in few messages, whatever is sent between them', async () => {
    const step = fc.constantFrom('cluster', 'hosts', 'removed', 'other', 'turn');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 200 }), async (steps) => {
        const sent: MainToWorker[] = [];
        const expected: string[] = [];
        const queue = new UpdateQueue(NO_FAULTS, (message) => sent.push(message));
        let messages = 0;
        let waiting = 0;
        for (const [generation, kind] of steps.entries()) {
          const name = `c${generation}`;
          if (kind === 'turn' || kind === 'other') {
            if (kind === 'turn') await new Promise(setImmediate);
            else queue.flush();
            messages += waiting > 0 ? 1 : 0;
            waiting = 0;
            assert.equal(sent.flatMap(updatesOf).length, expected.length);
            continue;
          }
          if (kind === 'cluster') queue.add({ type: 'unpacked', generation, cluster: clusterNamed(name) });
          else if (kind === 'hosts') queue.add({ type: 'hosts', generation, update: { cluster: name } as HostsUpdate });
          else queue.add({ type: 'cluster-removed', generation, name });
          expected.push(`${generation} ${kind} ${name}`);
          waiting += 1;
          if (waiting < MOST) continue;
          waiting = 0;
          messages += 1;
        }
        await new Promise(setImmediate);
        messages += waiting > 0 ? 1 : 0;
        assert.deepEqual(sent.flatMap(updatesOf).map(told), expected);
        assert.equal(sent.length, messages);
        assert.ok(sent.every((message) => updatesOf(message).length <= MOST));
      }),
    );
  });
});
