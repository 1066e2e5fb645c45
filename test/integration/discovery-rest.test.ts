// Resources from a management server that is asked by HTTP (REST): every question is looked at.

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import { describe, it, type TestContext } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import {
  answerOf,
  assignment,
  cluster,
  discoveringListener,
  eds,
  listener,
  upstreamSaying,
} from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { type OddAnswer, RestPlane, restBootstrap, restSource } from '../support/rest-plane.ts';
import { tlsMessage } from '../support/tls-config.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const V3 = {
  clusters: 'config.cluster.v3.Cluster',
  listeners: 'config.listener.v3.Listener',
  endpoints: 'config.endpoint.v3.ClusterLoadAssignment',
  routes: 'config.route.v3.RouteConfiguration',
} as const;
const V2: Readonly<Record<keyof typeof V3, string>> = {
  clusters: 'api.v2.Cluster',
  listeners: 'api.v2.Listener',
  endpoints: 'api.v2.ClusterLoadAssignment',
  routes: 'api.v2.RouteConfiguration',
};
const SLOW = '1000s';

async function someServer(t: TestContext, version = '1'): Promise<{ plane: RestPlane; port: number }> {
  const plane = await RestPlane.start(t);
  const port = await upstreamSaying(t, 'one');
  serve(plane, version, [cluster('a', port)], [listener('in', 'a')]);
  return { plane, port };
}

function serve(
  plane: RestPlane,
  version: string,
  clusters: readonly JsonObject[],
  listeners: readonly JsonObject[],
): void {
  plane.set('clusters', version, V3.clusters, clusters);
  plane.set('listeners', version, V3.listeners, listeners);
}

function untilLogged({ output }: WeirProcess, pattern: RegExp): Promise<void> {
  return untilEqual(true, () => pattern.test(output.stderr), `${pattern} in the log`);
}

function occurrences(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length;
}

async function untilMore(weir: WeirProcess, stat: string): Promise<void> {
  const before = (await weir.stat(stat)) ?? 0;
  await untilEqual(true, async () => ((await weir.stat(stat)) ?? 0) > before + 2, `more of ${stat}`);
}

for (const generation of ['V3', 'V2'] as const) {
  describe(`a management server that is asked by HTTP, ${generation}`, () => {
    it('tells clusters, listeners, endpoints and routes, each change of them, and what is wrong with one', async (t) => {
      const types = generation === 'V3' ? V3 : V2;
      const plane = await RestPlane.start(t);
      const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
      const source = restSource(generation);
      const table = (to: string): JsonObject => {
        const routes = [{ match: { prefix: '/' }, route: { cluster: to } }];
        return { name: 'table', virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
      };
      plane.set('clusters', '1', types.clusters, [cluster('a', one), eds('b', source)]);
      plane.set('listeners', '1', types.listeners, [listener('in', 'b'), discoveringListener('on', 'table', source)]);
      plane.set('endpoints', '1', types.endpoints, [assignment('b', one), assignment('unasked', one)]);
      plane.set('routes', '1', types.routes, [table('a')]);
      await using weir = await startWeir({
        configYaml: restBootstrap([plane.port], { generation }),
        args: ['--concurrency', '2'],
      });
      assert.deepEqual([await answerOf(weir, 'in'), await answerOf(weir, 'on')], ['200 one', '200 one']);

      plane.set('endpoints', '2', types.endpoints, [assignment('b', two)]);
      await untilEqual('200 two', () => answerOf(weir, 'in'), 'another endpoint');
      plane.set('routes', '2', types.routes, [table('b')]);
      await untilEqual('200 two', () => answerOf(weir, 'on'), 'another table');

      const bad = cluster('bad', one, { connect_timeout: '-1s' });
      plane.set('clusters', '2', types.clusters, [cluster('a', two), bad, eds('b', source)]);
      const refusal = await plane.refused('clusters');
      assert.match(
        refusal.body.error_detail!.message,
        /cluster bad: response:1:\d+: resources\[1\]\.connect_timeout: -1s/,
      );
      assert.deepEqual([refusal.body.error_detail!.code, refusal.body.version_info], [13, '1']);
      plane.set('routes', '3', types.routes, [table('a')]);
      await untilEqual('200 two', () => answerOf(weir, 'on'), 'what is good of a refused response');
      assert.equal(occurrences(weir.output.stderr, /\[warning\].*cluster bad: response/g), 1);

      plane.set('clusters', '3', types.clusters, [cluster('a', two)]);
      plane.set('listeners', '3', types.listeners, [discoveringListener('on', 'table', source)]);
      await plane.accepted('clusters', '3');
      assert.match(await weir.admin('/clusters'), /^version_info::3$/m);
      assert.doesNotMatch(await weir.admin('/clusters'), /^b::/m);
      await plane.accepted('listeners', '3');
      assert.deepEqual([...(await weir.listeners()).keys()], ['on']);

      for (const [path, type] of Object.entries(types)) {
        const [first] = plane.asked(path);
        assert.equal(first!.path, `/${generation.toLowerCase()}/discovery:${path}`);
        assert.equal(first!.body.type_url, `type.googleapis.com/envoy.${type}`);
        assert.deepEqual([first!.method, first!.host, first!.contentType], ['POST', 'control', 'application/json']);
        const { node, version_info: version, response_nonce: nonce } = first!.body;
        assert.deepEqual([node!.id, version, nonce], ['me', undefined, undefined]);
        assert.equal(node!.metadata!.token, 'shown to servers');
        assert.equal(node!.build_version !== undefined, generation === 'V2');
      }
      assert.deepEqual(plane.asked('endpoints')[0]!.body.resource_names, ['b']);
      assert.equal(plane.asked('clusters')[0]!.body.resource_names, undefined);
      // Connections are kept, for as long as the server keeps them.
      assert.ok(Math.max(...plane.requests.map(({ connection }) => connection)) < plane.requests.length / 2);
    });
  });
}

describe('a management server that is asked by HTTP', () => {
  it('may say that there is nothing new, or the same again: nothing changes', async (t) => {
    const { plane, port } = await someServer(t);
    await using weir = await startWeir({ configYaml: restBootstrap([plane.port]) });
    await plane.accepted('clusters', '1');
    const successes = await weir.stat('cluster_manager.cds.update_success');
    await untilMore(weir, 'cluster_manager.cds.update_attempt');
    assert.equal(await weir.stat('cluster_manager.cds.update_success'), successes);
    const resources = [{ '@type': `type.googleapis.com/envoy.${V3.clusters}`, ...cluster('a', port) }];
    plane.odd = (response) => response.end(JSON.stringify({ version_info: '7', resources }));
    await untilMore(weir, 'cluster_manager.cds.update_success');
    assert.equal(await weir.stat('cluster_manager.cluster_modified'), 0);
    assert.equal(await weir.stat('cluster_manager.cluster_added'), 2);
  });

  it('is asked at once by who has come last, without a version', async (t) => {
    const { plane, port } = await someServer(t);
    const slowly = restSource('V3', { refresh_delay: SLOW });
    plane.set('endpoints', '1', V3.endpoints, [assignment('b', port), assignment('c', port)]);
    plane.set('clusters', '1', V3.clusters, [cluster('a', port), eds('b', slowly)]);
    await using weir = await startWeir({ configYaml: restBootstrap([plane.port]) });
    plane.set('clusters', '2', V3.clusters, [cluster('a', port), eds('b', slowly), eds('c', slowly)]);
    await untilEqual(true, async () => /^c::127/m.test(await weir.admin('/clusters')), 'members of c');
    assert.deepEqual(
      plane.asked('endpoints').map(({ body }) => [body.version_info, body.resource_names]),
      [
        [undefined, ['b']],
        [undefined, ['b', 'c']],
      ],
    );
    // One that takes the place of another has nothing yet, though its name is an old one.
    plane.set('clusters', '3', V3.clusters, [eds('b', slowly), { ...eds('c', slowly), connect_timeout: '7s' }]);
    await untilEqual(3, () => plane.asked('endpoints').length, 'a question for the new one');
    assert.equal(plane.asked('endpoints')[2]!.body.version_info, undefined);
  });

  const ODD: readonly (readonly [what: string, answer: OddAnswer, complaint: RegExp, stat: string])[] = [
    ['503', (response) => response.writeHead(503).end('busy'), /: HTTP 503/, 'update_failure'],
    [
      'no JSON',
      (response) => response.end('{"resources": ['),
      /an answer cannot be read: response:1/,
      'update_rejected',
    ],
    ['nothing', (response) => response.end(), /an answer cannot be read: response: file is empty/, 'update_rejected'],
    [
      'JSON of another kind',
      (response) => response.end('{"resources": 7}'),
      /an answer cannot be read: response:1:\d+: resources: /,
      'update_rejected',
    ],
    [
      'half an answer',
      (response) => response.writeHead(200, { 'content-length': 9 }).write('{', () => response.destroy()),
      /closed in the middle of the answer|ECONNRESET/,
      'update_failure',
    ],
    ['no byte', (response) => response.destroy(), /closed before the answer|ECONNRESET/, 'update_failure'],
    ['silence', () => {}, /: no answer within 200 ms/, 'update_failure'],
  ];
  for (const [what, answer, complaint, stat] of ODD) {
    it(`may answer with ${what}: it is counted, said once, and what serves goes on`, async (t) => {
      const { plane, port } = await someServer(t);
      // Nobody but the one that is to be slow may be too slow.
      const api = what === 'silence' ? { request_timeout: '0.2s' } : {};
      await using weir = await startWeir({ configYaml: restBootstrap([plane.port], { api }) });
      assert.equal(await answerOf(weir, 'in'), '200 one');
      plane.odd = answer;
      await untilMore(weir, `cluster_manager.cds.${stat}`);
      await untilLogged(weir, complaint);
      assert.equal(await answerOf(weir, 'in'), '200 one');
      plane.odd = undefined;
      serve(plane, '2', [cluster('a', port), cluster('b', port)], [listener('in', 'a'), listener('on', 'b')]);
      await untilEqual('200 one', () => answerOf(weir, 'on').catch(() => ''), 'what came later');
      // Of each of the two types.
      if (what !== 'silence' && what !== 'half an answer' && what !== 'no byte')
        assert.equal(occurrences(weir.output.stderr, new RegExp(`\\[warning\\].*${complaint.source}`, 'g')), 2);
    });
  }

  it('may send a resource of another type, one without a name, and two of one name: the others count', async (t) => {
    const { plane, port } = await someServer(t);
    await using weir = await startWeir({ configYaml: restBootstrap([plane.port]) });
    await plane.accepted('clusters', '1');
    const typed = { '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener', name: 'odd' };
    const wrapped = {
      '@type': 'type.googleapis.com/envoy.service.discovery.v3.Resource',
      name: 'wrapped',
      version: '9',
      resource: { '@type': `type.googleapis.com/envoy.${V3.clusters}`, ...cluster('wrapped', port) },
    };
    const unknown = { ...cluster('unknown', port), no_such_field: 1 };
    plane.set('clusters', '2', V3.clusters, [
      cluster('new', port),
      typed,
      cluster('', port),
      cluster('new', port),
      wrapped,
      unknown,
    ]);
    const { message } = (await plane.refused('clusters')).body.error_detail!;
    assert.match(message, /resources\[1\]: is no proxy\.config\.cluster\.v3\.Cluster/);
    assert.match(message, /resources\[2\]\.name/);
    assert.match(message, /duplicate cluster new found/);
    const clusters = await weir.admin('/clusters');
    for (const name of ['a', 'new', 'wrapped', 'unknown']) assert.match(clusters, new RegExp(`^${name}::`, 'm'));
    assert.match(weir.output.stderr, /\[warning\].*no_such_field/);
    const { configs } = JSON.parse(await weir.admin('/config_dump?mask=dynamic_active_clusters')) as never;
    assert.match(JSON.stringify(configs), /"version_info":"9"/);
  });

  it('may come late: the proxy is live when it has waited long enough', async (t) => {
    const first = await RestPlane.start(t);
    first.stop();
    const source = { initial_fetch_timeout: '0.2s' };
    await using weir = await startWeir({ configYaml: restBootstrap([first.port], { source }) });
    assert.equal(await weir.stat('cluster_manager.cds.init_fetch_timeout'), 1);
    assert.ok((await weir.stat('cluster_manager.cds.update_failure'))! >= 1);
    await untilLogged(weir, /\[warning\].*management server .* of cluster control: ECONNREFUSED/);
    const plane = await RestPlane.start(t, { port: first.port });
    serve(plane, '1', [cluster('a', await upstreamSaying(t, 'one'))], [listener('in', 'a')]);
    await untilEqual('200 one', () => answerOf(weir, 'in').catch(() => ''), 'what came late');
  });

  it('has several hosts that are asked in turn, over connections that they may close at any time', async (t) => {
    const planes = [await RestPlane.start(t), await RestPlane.start(t)];
    const port = await upstreamSaying(t, 'one');
    for (const plane of planes) serve(plane, '1', [cluster('a', port)], [listener('in', 'a')]);
    planes[0]!.keepsNothing = true;
    await using weir = await startWeir({ configYaml: restBootstrap(planes.map((plane) => plane.port)) });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    for (const plane of planes) {
      const before = plane.requests.length;
      plane.endIdleConnections();
      await untilEqual(true, () => plane.requests.length > before + 3, 'more questions');
    }
    assert.doesNotMatch(weir.output.stderr, /\[warning\].*management server/);
    assert.equal(await weir.stat('cluster_manager.cds.update_failure'), 0);
  });

  for (const protocol of ['http1', 'http2'] as const) {
    it(`is asked over one connection of each host, for each type: ${protocol}`, async (t) => {
      const planes = [await RestPlane.start(t, { protocol }), await RestPlane.start(t, { protocol })];
      const port = await upstreamSaying(t, 'one');
      for (const plane of planes) serve(plane, '1', [cluster('a', port)], [listener('in', 'a')]);
      const server = protocol === 'http2' ? { http2_protocol_options: {} } : {};
      const ports = planes.map((plane) => plane.port);
      await using weir = await startWeir({ configYaml: restBootstrap(ports, { server }) });
      for (const plane of planes) await untilEqual(true, () => plane.asked('clusters').length > 4, 'questions in turn');
      assert.equal(await answerOf(weir, 'in'), '200 one');
      for (const plane of planes) {
        for (const path of ['clusters', 'listeners']) {
          assert.equal(new Set(plane.asked(path).map(({ connection }) => connection)).size, 1, path);
        }
      }
    });

    it(`is asked once more at once where it ends a connection before it answers: ${protocol}`, async (t) => {
      const plane = await RestPlane.start(t, { protocol });
      serve(plane, '1', [cluster('a', await upstreamSaying(t, 'one'))], [listener('in', 'a')]);
      const server = protocol === 'http2' ? { http2_protocol_options: {} } : {};
      let drops = 0;
      const drop = (response: ServerResponse): void => {
        drops += 1;
        plane.odd = undefined;
        const { session } = (response as unknown as { stream?: ServerHttp2Stream }).stream ?? {};
        if (session === undefined) response.destroy();
        else session.destroy();
      };
      // The first question has a new connection, the others one that has been kept.
      plane.odd = drop;
      await using weir = await startWeir({ configYaml: restBootstrap([plane.port], { server }) });
      assert.equal(await answerOf(weir, 'in'), '200 one');
      for (let round = 0; round < 5; round += 1) {
        const before = plane.requests.length;
        plane.odd = drop;
        await untilEqual(true, () => plane.requests.length > before + 4, 'more questions');
      }
      assert.equal(drops, 6);
      assert.equal(await weir.stat('cluster_manager.cds.update_failure'), 0);
      assert.equal(await weir.stat('listener_manager.lds.update_failure'), 0);
      assert.doesNotMatch(weir.output.stderr, /\[warning\].*management server/);
    });
  }

  it('may keep one connection, and close it between two questions', async (t) => {
    const { plane } = await someServer(t);
    await using weir = await startWeir({ configYaml: restBootstrap([plane.port]) });
    for (let round = 0; round < 5; round += 1) {
      const before = plane.requests.length;
      plane.endIdleConnections();
      await untilEqual(true, () => plane.requests.length > before + 4, 'more questions');
    }
    assert.equal(await weir.stat('cluster_manager.cds.update_rejected'), 0);
    assert.equal(await answerOf(weir, 'in'), '200 one');
  });

  it('speaks HTTP/2 where its cluster does', async (t) => {
    const plane = await RestPlane.start(t, { protocol: 'http2' });
    serve(plane, '1', [cluster('a', await upstreamSaying(t, 'one'))], [listener('in', 'a')]);
    const server = { http2_protocol_options: {} };
    await using weir = await startWeir({ configYaml: restBootstrap([plane.port], { server }) });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    const { host, path } = (await plane.accepted('clusters', '1'))!;
    assert.deepEqual([host, path], ['control', '/v3/discovery:clusters']);
  });

  it('is asked over TLS where its cluster has it, and only if it is who it should be', async (t) => {
    using folder = new CertificateFolder();
    const ca = await folder.make('ca', { isAuthority: true });
    const own = await folder.make('server', { issuer: ca, altNames: 'DNS:control.example' });
    const plane = await RestPlane.start(t, { tls: { key: own.key, cert: own.certificate } });
    serve(plane, '1', [cluster('a', await upstreamSaying(t, 'one'))], [listener('in', 'a')]);
    const secured = (exact: string): JsonObject => {
      const match_typed_subject_alt_names = [{ san_type: 'DNS', matcher: { exact } }];
      const validation_context = { trusted_ca: { filename: ca.certificatePath }, match_typed_subject_alt_names };
      const typed_config = tlsMessage('UpstreamTlsContext', { common_tls_context: { validation_context } });
      return { transport_socket: { name: 'tls', typed_config } } as JsonObject;
    };
    await using weir = await startWeir({
      configYaml: restBootstrap([plane.port], { server: secured('control.example') }),
    });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    const before = plane.requests.length;
    assert.ok(before > 0);
    await weir.stop();
    plane.requests.length = 0;
    const source = { initial_fetch_timeout: '0.3s' };
    await using other = await startWeir({
      configYaml: restBootstrap([plane.port], { server: secured('other.example'), source }),
    });
    await untilLogged(other, /management server .*cluster control: .*/);
    assert.deepEqual(plane.requests, []);
  });
});
