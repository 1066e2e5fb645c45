import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { openResponseFile, UnknownFieldPolicy } from '../../../../src/config/index.ts';
import { DiscoveredSet } from '../../../../src/control-plane/discovery/discovered-set.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { ClusterSettings } from '../../../../src/snapshot/index.ts';
import { clusterNamed, type JsonObject, mustLoad } from '../../../support/bootstrap.ts';
import { ManagedClusters } from '../../../support/managed-clusters.ts';

const NO_LOG = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write: () => {} } }).get('config');
const CLUSTER = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';

describe('clusters by discovery that come again as they were', () => {
  it('are not read again, and are of the new version and its time all the same', async (t) => {
    using clusters = new ManagedClusters([]);
    const { manager, clock } = clusters;
    void manager.start();
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-kept-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'clusters.json');
    let { discoverable } = mustLoad({});
    let reads = 0;
    const set = new DiscoveredSet<ClusterSettings>({
      kind: 'cluster',
      manager,
      removes: 'last',
      log: NO_LOG,
      onDeprecatedFields: () => {},
      onAnswered: () => {},
    });
    const respond = async (version: string, ...resources: readonly JsonObject[]): Promise<readonly string[]> => {
      const typed = resources.map((resource) => ({ '@type': CLUSTER, ...resource }));
      writeFileSync(file, JSON.stringify({ version_info: version, resources: typed }));
      const type = discoverable.clusters();
      const read: typeof type.read = (...given) => {
        reads += 1;
        return type.read(...given);
      };
      const opened = openResponseFile(file, { ...type, read }, new UnknownFieldPolicy('reject'));
      assert.ok('offered' in opened);
      return await set.onResponse(opened);
    };
    const records = (): unknown => manager.dump().map(({ name, version, updatedMs }) => [name, version, updatedMs]);
    const other = (timeout: string): JsonObject => ({ ...clusterNamed('two'), connect_timeout: timeout });
    assert.deepEqual(await respond('1', clusterNamed('one'), other('1s')), []);
    const first = clock.wallMs();
    clock.turn(1000);
    assert.deepEqual(await respond('2', clusterNamed('one'), other('1s')), []);
    assert.deepEqual([reads, manager.version], [2, '2']);
    assert.notEqual(clock.wallMs(), first);
    const now = clock.wallMs();
    assert.deepEqual(records(), [
      ['one', '2', now],
      ['two', '2', now],
    ]);
    for (const version of ['3', '4']) {
      assert.equal((await respond(version, clusterNamed('one'), other('-1s'))).length, 1);
    }
    assert.deepEqual([reads, manager.version, [...manager.failures()].length], [4, '4', 1]);
    await respond('5', clusterNamed('one'), other('1s'));
    assert.deepEqual([reads, [...manager.failures()].length], [5, 0]);
    await respond('6', clusterNamed('one'));
    await respond('7', clusterNamed('one'), other('1s'));
    assert.equal(reads, 6);
    ({ discoverable } = mustLoad({}));
    await respond('8', clusterNamed('one'), other('1s'));
    assert.equal(reads, 8);
  });
});
