// Clusters and listeners from a management server, in every form of the discovery protocol: each request is held against it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../support/bootstrap.ts';
import { ControlPlane, type ReceivedRequest } from '../support/control-plane.ts';
import {
  answerOf,
  assignment,
  bootstrap,
  CLUSTER,
  cluster,
  discoveringListener,
  ENDPOINTS,
  eds,
  FORMS,
  type Form,
  LISTENER,
  listener,
  ofForm,
  ROUTES,
  serve,
  upstreamSaying,
} from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';

const [STATE, , CHANGES] = FORMS as [Form, Form, Form];

describe('clusters and listeners from a management server', () => {
  for (const form of FORMS) {
    it(`come, change, are refused for themselves and go: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
      serve(plane, '1', [cluster('a', one)], [listener('in', 'a')]);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]), args: ['--concurrency', '2'] });
      assert.equal(await answerOf(weir, 'in'), '200 one');
      assert.equal((await plane.answered(CLUSTER, '1')).error_detail, null);
      assert.equal((await plane.answered(LISTENER, '1')).error_detail, null);

      plane.set(CLUSTER, '2', [cluster('a', two), cluster('b', one)]);
      await plane.answered(CLUSTER, '2');
      await untilEqual('200 two', () => answerOf(weir, 'in'), 'the other upstream');

      const bad = cluster('bad', one, { connect_timeout: '-1s' });
      plane.set(CLUSTER, '3', [cluster('a', one), bad]);
      const { error_detail: refusal, version_info: kept } = await plane.answered(CLUSTER, '3');
      assert.match(refusal!.message, /cluster bad: resources\[1\]\.connect_timeout: -1s is not above 0s/);
      assert.equal(refusal!.code, 13);
      if (form.api_type === 'GRPC') assert.equal(kept, '2');
      await untilEqual('200 one', () => answerOf(weir, 'in'), 'what is good of a refused response');
      assert.equal(await weir.stat('cluster_manager.cds.update_rejected'), 1);
      assert.match(await weir.admin('/clusters'), /^version_info::3$/m);
      assert.doesNotMatch(await weir.admin('/clusters'), /^b::/m);

      plane.set(LISTENER, '4', [listener('other', 'a')]);
      await plane.answered(LISTENER, '4');
      await untilEqual('200 one', () => answerOf(weir, 'other').catch(() => ''), 'the listener in its place');
      assert.equal((await weir.listeners()).has('in'), false);
      assert.deepEqual(plane.violations, []);

      const prefix = form.isAggregated ? '' : 'cluster_manager.cds.';
      assert.equal(await weir.stat(`${prefix}control_plane.connected_state`), 1);
      assert.match(await weir.admin('/stats?filter=identifier'), /control_plane\.identifier: "test-plane"/);
      const [first] = plane.requests;
      assert.equal(first!.node!.id, 'me');
      assert.equal(first!.node!.build_version !== '', form.generation === 'V2');
      assert.equal(first!.type_url.includes('envoy.api.v2.'), form.generation === 'V2');
      assert.equal(first!.path.includes('.v2.'), form.generation === 'V2');
      assert.equal(plane.streams, form.isAggregated ? 1 : 2);
    });
  }
});

describe('endpoints from a management server', () => {
  for (const form of FORMS) {
    it(`are asked for by the names of clusters, and change for themselves: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
      const of = (name: string, fields: JsonObject = {}): JsonObject => eds(name, ofForm(form), fields);
      serve(plane, '1', [of('a'), of('b', { service_name: 'service/b' })], [listener('in', 'a'), listener('on', 'b')]);
      plane.set(ENDPOINTS, '1', [assignment('a', one), assignment('service/b', two), assignment('unasked', one)]);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]), args: ['--concurrency', '2'] });
      assert.deepEqual([await answerOf(weir, 'in'), await answerOf(weir, 'on')], ['200 one', '200 two']);

      plane.set(ENDPOINTS, '2', [assignment('a', two), assignment('service/b', two)]);
      assert.equal((await plane.answered(ENDPOINTS, '2')).error_detail, null);
      await untilEqual('200 two', () => answerOf(weir, 'in'), 'the other endpoint');

      const bad = { ...assignment('a', one), policy: { drop_overloads: [{}, {}] } };
      plane.set(ENDPOINTS, '3', [bad, assignment('service/b', one)]);
      assert.match(
        (await plane.answered(ENDPOINTS, '3')).error_detail!.message,
        /resources\[0\]\.policy\.drop_overloads/,
      );
      await untilEqual('200 one', () => answerOf(weir, 'on'), 'what is good of a refused response');
      assert.equal(await answerOf(weir, 'in'), '200 two');
      assert.equal(await weir.stat('cluster.a.update_rejected'), 1);

      // What nobody needs any more is not asked for any more.
      plane.set(LISTENER, '4', [listener('on', 'b')]);
      plane.set(CLUSTER, '4', [of('b', { service_name: 'service/b' })]);
      const namesOf = ({
        resource_names: all,
        resource_names_unsubscribe: less,
      }: ReceivedRequest): readonly string[] => (form.api_type === 'GRPC' ? all : less);
      const last = form.api_type === 'GRPC' ? ['service/b'] : ['a'];
      const ofEndpoints = ({ type_url }: ReceivedRequest): boolean => type_url.endsWith('.ClusterLoadAssignment');
      await untilEqual(
        true,
        () => plane.requests.some((each) => ofEndpoints(each) && isDeepStrictEqual([...namesOf(each)], last)),
        'the end of a name',
      );
      assert.equal(await answerOf(weir, 'on'), '200 one');
      assert.deepEqual(plane.violations, []);
    });
  }
});

describe('a cluster that takes the place of another', () => {
  for (const form of FORMS) {
    const isOfChanges = form.api_type === 'DELTA_GRPC';
    const outcome = isOfChanges ? 'is told again' : 'has the endpoints of before where it is told nothing';
    it(`asks for its endpoints, though they have been asked for before, and ${outcome}: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      const one = await upstreamSaying(t, 'one');
      // Longer than the test where an answer comes.
      const source = { ...ofForm(form), initial_fetch_timeout: isOfChanges ? '600s' : '0.3s' };
      const of = (connect_timeout: string): JsonObject => ({ ...eds('a', source), connect_timeout });
      serve(plane, '1', [of('1s')], [listener('in', 'a')]);
      plane.set(ENDPOINTS, '1', [assignment('a', one)]);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]), args: ['--concurrency', '1'] });
      assert.equal(await answerOf(weir, 'in'), '200 one');
      await plane.answered(ENDPOINTS, '1');

      const before = plane.requests.length;
      plane.set(CLUSTER, '2', [of('2s')]);
      const isAsked = ({ type_url, resource_names: all, resource_names_subscribe: more }: ReceivedRequest): boolean =>
        type_url.endsWith('.ClusterLoadAssignment') && isDeepStrictEqual([...(isOfChanges ? more : all)], ['a']);
      await untilEqual(true, () => plane.requests.slice(before).some(isAsked), 'another question');
      const counts = async (): Promise<string> =>
        `${await weir.stat('cluster_manager.cluster_modified')} ${await weir.stat('cluster_manager.warming_clusters')}`;
      await untilEqual('1 0', counts, 'the successor');
      assert.equal(await answerOf(weir, 'in'), '200 one');
      assert.equal(await weir.stat('cluster.a.assignment_use_cached'), isOfChanges ? 0 : 1);
      assert.equal(await weir.stat('cluster.a.init_fetch_timeout'), isOfChanges ? 0 : 1);
      assert.deepEqual(plane.violations, []);
    });
  }
});

describe('route tables from a management server', () => {
  for (const form of FORMS) {
    it(`are asked for by the names of listeners, and change without them: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
      const table = (name: string, to: string): JsonObject => {
        const routes = [{ match: { prefix: '/' }, route: { cluster: to } }];
        return { name, virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
      };
      plane.set(CLUSTER, '1', [cluster('a', one), cluster('b', two)]);
      plane.set(LISTENER, '1', [discoveringListener('in', 'table', ofForm(form))]);
      plane.set(ROUTES, '1', [table('table', 'a'), table('unasked', 'a')]);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]), args: ['--concurrency', '2'] });
      assert.equal(await answerOf(weir, 'in'), '200 one');
      const { port } = (await weir.listeners()).get('in')!;
      plane.set(ROUTES, '2', [table('table', 'b')]);
      assert.equal((await plane.answered(ROUTES, '2')).error_detail, null);
      await untilEqual('200 two', () => answerOf(weir, 'in'), 'the other table');
      plane.set(ROUTES, '3', [{ ...table('table', 'a'), virtual_hosts: [{ name: 'all', domains: [] }] }]);
      assert.match(
        (await plane.answered(ROUTES, '3')).error_detail!.message,
        /route configuration table: resources\[0\]\.virtual_hosts\[0\]\.domains/,
      );
      assert.equal(await answerOf(weir, 'in'), '200 two');
      assert.equal((await weir.listeners()).get('in')!.port, port);
      assert.equal(await weir.stat('listener_manager.listener_modified'), 0);
      assert.deepEqual(plane.violations, []);
    });
  }
});

for (const form of [STATE, CHANGES]) {
  describe(`a management server that goes and comes back: ${form.name}`, () => {
    it('is told what this proxy has, which serves on meanwhile', async (t) => {
      const plane = await ControlPlane.start(t);
      const one = await upstreamSaying(t, 'one');
      serve(plane, '7', [cluster('a', one)], [listener('in', 'a')]);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]) });
      await plane.answered(LISTENER, '7');
      plane.stop();
      await untilEqual(0, () => weir.stat('control_plane.connected_state'), 'a lost stream');
      assert.equal(await answerOf(weir, 'in'), '200 one');
      const second = await ControlPlane.start(t, plane.port);
      // An older version is taken as well: the server knows best.
      serve(second, '6', [cluster('a', one), cluster('b', one)], [listener('in', 'a'), listener('new', 'b')]);
      await second.answered(LISTENER, '6');
      await untilEqual('200 one', () => answerOf(weir, 'new').catch(() => ''), 'the new listener');
      assert.deepEqual(second.violations, []);
      const [first] = second.requests;
      if (form.api_type === 'GRPC') assert.equal(first!.version_info, '7');
      else assert.deepEqual({ ...first!.initial_resource_versions }, { a: '7' });
      assert.ok((await weir.stat('cluster_manager.cds.update_failure'))! >= 1);
    });

    it('is followed by another stream where it ends one, without a warning', async (t) => {
      const plane = await ControlPlane.start(t);
      const one = await upstreamSaying(t, 'one');
      serve(plane, '1', [cluster('a', one)], [listener('in', 'a')]);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]) });
      await plane.answered(LISTENER, '1');
      plane.endStreams();
      await untilEqual(2, () => Math.max(...plane.requests.map(({ stream }) => stream)), 'a second stream');
      assert.doesNotMatch(weir.output.stderr, /\[warning\].*management server/);
      assert.match(weir.output.stderr, /has ended the stream/);
      assert.equal(await answerOf(weir, 'in'), '200 one');
    });
  });
}
