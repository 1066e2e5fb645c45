// Management servers that say what they should not, that are not there, or that nobody should believe: what serves goes on serving,
// and what is wrong is told of.

import assert from 'node:assert/strict';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { ServerCredentials } from '@grpc/grpc-js';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { ControlPlane } from '../support/control-plane.ts';
import {
  answerOf,
  bootstrap,
  CLUSTER,
  cluster,
  FORMS,
  LISTENER,
  listener,
  serve,
  upstreamSaying,
} from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { tlsMessage } from '../support/tls-config.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const [STATE, , CHANGES] = FORMS as [(typeof FORMS)[0], (typeof FORMS)[0], (typeof FORMS)[0]];

/** A server with one cluster and one listener. */
async function someServer(t: TestContext, version = '1'): Promise<{ plane: ControlPlane; port: number }> {
  const plane = await ControlPlane.start(t);
  const port = await upstreamSaying(t, 'one');
  serve(plane, version, [cluster('a', port)], [listener('in', 'a')]);
  return { plane, port };
}

function untilLogged({ output }: WeirProcess, pattern: RegExp): Promise<void> {
  return untilEqual(true, () => pattern.test(output.stderr), `${pattern} in the log`);
}

function occurrences(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length;
}

for (const form of [STATE, CHANGES]) {
  describe(`a management server: ${form.name}`, () => {
    it('may send bytes that are no message, types that nobody has asked for, and what it has been asked for behind them', async (t) => {
      const { plane, port } = await someServer(t);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]) });
      await plane.answered(LISTENER, '1');
      plane.sendRaw(Buffer.from([0x0a, 0xff, 0xff, 0xff]));
      await untilLogged(weir, /management server xds_0: a response cannot be read/);
      // No type, and one that nobody wants.
      plane.sendRaw(Buffer.alloc(0));
      plane.sendRaw(Buffer.from('\x22\x2ctype.googleapis.com/envoy.api.v2.auth.Secret', 'latin1'));
      plane.set(CLUSTER, '2', [cluster('a', port), cluster('b', port)]);
      assert.equal((await plane.answered(CLUSTER, '2')).error_detail, null);
      assert.equal(plane.streams, 1);
      assert.equal(await answerOf(weir, 'in'), '200 one');
    });

    it('may send a resource of another type, one without a name, and two of one name: the others count', async (t) => {
      const { plane, port } = await someServer(t);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]) });
      await plane.answered(LISTENER, '1');
      const other = { ...listener('odd', 'a'), generation: 'envoy.config.listener.v3.Listener' };
      plane.setOdd(CLUSTER, '2', [
        [CLUSTER, cluster('new', port)],
        ['config.listener.v3.Listener', other],
        [CLUSTER, cluster('', port)],
        [CLUSTER, cluster('new', port)],
        [CLUSTER, { name: 'cut', bytes: 'ff' }],
      ]);
      const { error_detail: refusal } = await plane.answered(CLUSTER, '2');
      assert.match(refusal!.message, /resources\[1\]: is no proxy\.config\.cluster\.v3\.Cluster/);
      assert.match(refusal!.message, /resources\[2\]\.name/);
      const second = /resources\[3\]: is named "new", and comes as "place-3"/;
      assert.match(refusal!.message, form === STATE ? /duplicate cluster new found/ : second);
      assert.match(refusal!.message, /resources\[4\]: not a binary Cluster message/);
      assert.match(await weir.admin('/clusters'), /^new::/m);
      assert.equal(await weir.stat('cluster_manager.cds.update_rejected'), 1);
    });

    it('may be silent: the proxy is live when it has waited long enough, and takes what comes later', async (t) => {
      const { plane } = await someServer(t);
      plane.isSilent = true;
      const source = { initial_fetch_timeout: '0.2s' };
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane], { source }) });
      assert.equal(await weir.stat('cluster_manager.cds.init_fetch_timeout'), 1);
      assert.equal(await weir.stat('listener_manager.lds.init_fetch_timeout'), 1);
      assert.equal(await weir.stat('control_plane.connected_state'), 1);
      plane.isSilent = false;
      plane.tellAll();
      await untilEqual('200 one', () => answerOf(weir, 'in').catch(() => ''), 'what came later');
    });

    it('may end each stream behind its first response: the next ones bring the rest', async (t) => {
      const { plane } = await someServer(t);
      plane.endsAfterEach = true;
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]) });
      await untilEqual('200 one', () => answerOf(weir, 'in').catch(() => ''), 'all of it');
      assert.doesNotMatch(weir.output.stderr, /\[warning\].*management server/);
      assert.deepEqual(plane.violations, []);
    });

    it('may have resources go by themselves, unless they come again', async (t) => {
      const { plane, port } = await someServer(t);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]) });
      await plane.answered(LISTENER, '1');
      plane.set(CLUSTER, '2', [cluster('a', port)], '1');
      await plane.answered(CLUSTER, '2');
      await untilEqual(false, async () => /^a::/m.test(await weir.admin('/clusters')), 'a cluster whose time is over');
      assert.match(weir.output.stderr, /resource a from management server xds_0 has lived its time/);
      plane.set(CLUSTER, '3', [cluster('a', port)]);
      await untilEqual('200 one', () => answerOf(weir, 'in').catch(() => ''), 'one that has come again');
    });

    it('is asked no faster than its limit allows, and told who asks once where that is enough', async (t) => {
      const { plane, port } = await someServer(t);
      const rate_limit_settings = { max_tokens: 1, fill_rate: 10 };
      const api = { rate_limit_settings, set_node_on_first_message_only: true };
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane], { api }) });
      assert.equal(await answerOf(weir, 'in'), '200 one');
      plane.set(CLUSTER, '2', [cluster('a', port), cluster('b', port)]);
      await plane.answered(CLUSTER, '2');
      assert.ok((await weir.stat('control_plane.rate_limit_enforced'))! > 0);
      await untilEqual(0, () => weir.stat('control_plane.pending_requests'), 'no waiting request');
      const [first, ...later] = plane.requests;
      assert.equal(first!.node!.id, 'me');
      assert.ok(later.length > 2);
      assert.deepEqual([...new Set(later.map(({ node }) => node))], [null]);
    });
  });
}

describe('management servers', () => {
  it('stand in for one that is not there; the first is asked again when its stand-in is lost', async (t) => {
    const first = await ControlPlane.start(t);
    first.stop();
    const { plane: second } = await someServer(t, '2');
    second.identifier = 'stand-in';
    await using weir = await startWeir({ configYaml: bootstrap(STATE, [first, second]) });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    assert.match(await weir.admin('/stats?filter=identifier'), /control_plane\.identifier: "stand-in"/);
    const back = await ControlPlane.start(t, first.port);
    serve(back, '3', [cluster('a', await upstreamSaying(t, 'three'))], [listener('in', 'a')]);
    second.stop();
    await untilEqual('200 three', () => answerOf(weir, 'in').catch(() => ''), 'what the first has');
    assert.match(await weir.admin('/stats?filter=identifier'), /control_plane\.identifier: "test-plane"/);
  });

  it('are asked with what is to be said, over TLS where their cluster has it, and only if they are who they should be', async (t) => {
    using folder = new CertificateFolder();
    const ca = await folder.make('ca', { isAuthority: true });
    const own = await folder.make('server', { issuer: ca, altNames: 'DNS:control.example' });
    const stranger = await folder.make('stranger', { issuer: ca, altNames: 'DNS:other.example' });
    const secured = (match: string): object => {
      const match_typed_subject_alt_names = [{ san_type: 'DNS', matcher: { exact: match } }];
      const validation_context = { trusted_ca: { filename: ca.certificatePath }, match_typed_subject_alt_names };
      const typed_config = tlsMessage('UpstreamTlsContext', { common_tls_context: { validation_context } });
      return { transport_socket: { name: 'tls', typed_config } };
    };
    const credentials = (of: typeof own): ServerCredentials =>
      ServerCredentials.createSsl(null, [
        { private_key: Buffer.from(of.key), cert_chain: Buffer.from(of.certificate) },
      ]);
    const plane = await ControlPlane.start(t, 0, credentials(own));
    serve(plane, '1', [cluster('a', await upstreamSaying(t, 'one'))], [listener('in', 'a')]);
    const grpc_services = [
      {
        envoy_grpc: { cluster_name: 'xds_0', authority: 'control.example' },
        initial_metadata: [{ key: 'x-token', value: 'secret' }],
      },
    ];
    const server = secured('control.example') as JsonObject;
    await using weir = await startWeir({ configYaml: bootstrap(STATE, [plane], { server, api: { grpc_services } }) });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    assert.equal(plane.requests[0]!.metadata['x-token'], 'secret');

    const wrong = await ControlPlane.start(t, 0, credentials(stranger));
    const source = { initial_fetch_timeout: '0.3s' };
    await using other = await startWeir({ configYaml: bootstrap(STATE, [wrong], { server, source }) });
    await untilLogged(other, /management server .*cluster xds_0: .*/);
    assert.deepEqual(wrong.requests, []);
    assert.equal(await other.stat('control_plane.connected_state'), 0);
  });

  it('may be named without a cluster: looked up, over TLS, with a token, and only if they are who was asked for', async (t) => {
    using folder = new CertificateFolder();
    const ca = await folder.make('ca', { isAuthority: true });
    const own = await folder.make('server', { issuer: ca, altNames: 'DNS:control.example' });
    const pair = { private_key: Buffer.from(own.key), cert_chain: Buffer.from(own.certificate) };
    const plane = await ControlPlane.start(t, 0, ServerCredentials.createSsl(null, [pair]));
    serve(plane, '1', [cluster('a', await upstreamSaying(t, 'one'))], [listener('in', 'a')]);
    const google = (name: string): JsonObject => ({
      target_uri: `dns:///localhost:${plane.port}`,
      stat_prefix: 'control',
      channel_credentials: { ssl_credentials: { root_certs: { filename: ca.certificatePath } } },
      call_credentials: [{ access_token: 'secret-token' }],
      channel_args: { args: { 'grpc.ssl_target_name_override': { string_value: name } } },
    });
    const api = (name: string): JsonObject => ({ grpc_services: [{ google_grpc: google(name) }] });
    await using weir = await startWeir({ configYaml: bootstrap(STATE, [plane], { api: api('control.example') }) });
    assert.equal(await answerOf(weir, 'in'), '200 one');
    const { authorization } = plane.requests[0]!.metadata as { readonly authorization: string };
    assert.equal(authorization, 'Bearer secret-token');
    assert.doesNotMatch(await weir.admin('/config_dump'), /secret-token/);
    assert.deepEqual(plane.violations, []);
    await weir.stop();
    plane.requests.length = 0;
    const source = { initial_fetch_timeout: '0.3s' };
    await using other = await startWeir({
      configYaml: bootstrap(STATE, [plane], { api: api('other.example'), source }),
    });
    await untilLogged(other, /management server dns:\/\/\/localhost:\d+: .*/);
    assert.deepEqual(plane.requests, []);
  });

  it('are complained of once where they answer otherwise than gRPC does, whatever they say', async (t) => {
    let answers = 0;
    const server = createServer((_request, response) => {
      answers += 1;
      response.writeHead(404).end('no such page');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const source = { initial_fetch_timeout: '0.2s' };
    await using weir = await startWeir({ configYaml: bootstrap(STATE, [{ port }], { source }) });
    await untilEqual(true, () => answers > 2, 'several tries');
    assert.equal(occurrences(weir.output.stderr, /\[warning\].*management server .*: HTTP 404, which is no gRPC/g), 1);
    assert.ok((await weir.stat('cluster_manager.cds.update_failure'))! >= 2);
  });

  it('may change clusters a thousand times under traffic, and no request fails', async (t) => {
    const plane = await ControlPlane.start(t);
    const ports = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')] as const;
    serve(plane, '0', [cluster('a', ports[0])], [listener('in', 'a')]);
    await using weir = await startWeir({ configYaml: bootstrap(CHANGES, [plane]), args: ['--concurrency', '2'] });
    const port = (await weir.listeners()).get('in')!.port;
    let isOver = false;
    let asked = 0;
    const ask = async (): Promise<void> => {
      const client = new WireClient(port);
      while (!isOver) {
        const { status } = await client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n').response();
        assert.equal(status, 200);
        asked += 1;
      }
      client.close();
    };
    const clients = Promise.all(Array.from({ length: 4 }, ask));
    for (let round = 1; round <= 1000; round += 1) {
      plane.set(CLUSTER, String(round), [cluster('a', ports[round % 2]!)]);
      if (round % 10 === 0) await plane.answered(CLUSTER, String(round));
    }
    isOver = true;
    await clients;
    assert.ok(asked > 100, `${asked} requests`);
    assert.equal(await weir.stat('cluster_manager.cds.update_rejected'), 0);
    assert.deepEqual(plane.violations, []);
  });
});
