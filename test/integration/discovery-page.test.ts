// What the live page is told of the sources of resources, in the real program: a management server by gRPC, one by HTTP and a file.

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { it } from 'node:test';
import type { Overview, Source } from '../../src/page/data.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { ControlPlane } from '../support/control-plane.ts';
import {
  assignment,
  bootstrap,
  CLUSTER,
  cluster,
  discoveringListener,
  eds,
  FORMS,
  LISTENER,
} from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { RestPlane } from '../support/rest-plane.ts';
import { startWeir } from '../support/weir-process.ts';

it('the page is told of each source: who it is, what has come last, what was refused and why, and what is wrong', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-sources-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'routes.json');
  const writeRoutes = (version: string, domains: readonly string[]): void => {
    const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
    const virtual_hosts = [{ name: 'all', domains, routes }];
    const table = {
      '@type': 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration',
      name: 'table',
      virtual_hosts,
    };
    writeFileSync(`${file}.next`, JSON.stringify({ version_info: version, resources: [table] }));
    renameSync(`${file}.next`, file);
  };
  writeRoutes('a', ['*']);
  const plane = await ControlPlane.start(t);
  const polled = await RestPlane.start(t, { protocol: 'http2' });
  const rest = {
    api_config_source: { api_type: 'REST', cluster_names: ['xds_1'], refresh_delay: '0.05s', request_timeout: '20s' },
  };
  const assignments = [assignment('e', 1), assignment('unasked', 1), assignment('other', 1)];
  const resources = assignments.map((each) => ({
    '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
    ...each,
  }));
  // It says all it has, whatever it is asked.
  polled.odd = (response) => response.end(JSON.stringify({ version_info: 'r', resources }));
  plane.set(CLUSTER, '1', [eds('e', rest)]);
  plane.set(LISTENER, '1', [discoveringListener('in', 'table', { path_config_source: { path: file } })]);
  await using weir = await startWeir({ configYaml: bootstrap(FORMS[0]!, [plane, polled]) });
  const sources = async (): Promise<readonly Source[]> =>
    (JSON.parse(await weir.admin('/page/overview')) as Overview).sources;
  const sourceOf = async (kind: Source['kind']): Promise<Source> =>
    (await sources()).find((each) => each.kind === kind)!;
  const typeOf = (source: Source, name: string): Source['types'][0] => source.types.find((type) => type.name === name)!;

  const stream = await sourceOf('stream');
  assert.deepEqual(
    [stream.name, stream.identifier, stream.isConnected, stream.complaint],
    ['xds_0', 'test-plane', true, ''],
  );
  assert.deepEqual(stream.types.map(({ name, wanted, accepted }) => [name, wanted, accepted?.version]).toSorted(), [
    ['Cluster', null, '1'],
    ['Listener', null, '1'],
  ]);
  const ofRest = await sourceOf('polls');
  const { wanted, unasked, accepted } = typeOf(ofRest, 'ClusterLoadAssignment');
  assert.deepEqual([ofRest.name, wanted, unasked, accepted?.version], ['xds_1', 1, 2, 'r']);
  const ofFile = await sourceOf('file');
  assert.deepEqual([ofFile.name, ofFile.isConnected], [file, true]);
  assert.equal(typeOf(ofFile, 'RouteConfiguration').accepted?.version, 'a');

  writeRoutes('b', []);
  await untilEqual('b', async () => typeOf(await sourceOf('file'), 'RouteConfiguration').refused?.version, 'a refusal');
  assert.match(typeOf(await sourceOf('file'), 'RouteConfiguration').refused!.reasons, /virtual_hosts\[0\]\.domains/);
  const bad: JsonObject = cluster('bad', 1, { connect_timeout: '-1s' });
  plane.set(CLUSTER, '2', [eds('e', rest), bad]);
  await untilEqual('2', async () => typeOf(await sourceOf('stream'), 'Cluster').refused?.version, 'a refusal');
  const refused = typeOf(await sourceOf('stream'), 'Cluster');
  assert.match(refused.refused!.reasons, /^cluster bad: resources\[1\]\.connect_timeout: -1s is not above 0s$/);
  assert.equal(refused.accepted!.version, '1');

  // What cannot be read, and what nobody wants.
  plane.sendRaw(Buffer.from('\x22\x2ctype.googleapis.com/envoy.api.v2.auth.Secret', 'latin1'));
  await untilEqual(true, async () => /auth\.Secret/.test((await sourceOf('stream')).complaint), 'an unasked type');
  const failures = (await weir.stat('cluster_manager.cds.update_failure'))!;
  plane.sendRaw(Buffer.from([0x0a, 0xff, 0xff, 0xff]));
  await untilEqual(
    true,
    async () => /^management server xds_0: a response cannot be read/.test((await sourceOf('stream')).complaint),
    'a complaint',
  );
  assert.equal(await weir.stat('cluster_manager.cds.update_failure'), failures + 1);
  polled.odd = (response) => response.writeHead(500).end();
  await untilEqual(false, async () => (await sourceOf('polls')).isConnected, 'a server that does not answer');
  assert.match((await sourceOf('polls')).complaint, /of cluster xds_1: HTTP 500$/);
  plane.stop();
  await untilEqual(false, async () => (await sourceOf('stream')).isConnected, 'a lost stream');
});
