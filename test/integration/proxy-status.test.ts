// Proxy-Status through the whole proxy: clients of HTTP/1 and HTTP/2 are told which fault a request has met, and requests without
// one say nothing.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { type TestContext, test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, ConfigError, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const ROUTES: readonly JsonObject[] = [
  routeTo('/empty', {}, { route: { cluster: 'empty' } }),
  routeTo('/away', {}, { route: { cluster: 'away' } }),
  routeTo('/retried', {}, { route: { cluster: 'web', retry_policy: { retry_on: '5xx', num_retries: 1 } } }),
  routeTo('/web'),
];

async function told(t: TestContext, config: JsonObject, manager: JsonObject = {}, answer?: string) {
  const upstream = await WireUpstream.answering(answer ?? 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  const empty = { ...clusterAt('empty', 1), load_assignment: { cluster_name: 'empty' } };
  const clusters = [clusterAt('web', upstream.port), clusterAt('away', await unusedPort()), empty];
  const listener = filteredListener([], ROUTES, { manager: { proxy_status_config: config, ...manager } });
  const proxy = await createProxy(bootstrapOf([listener], clusters, { node: { id: 'node 1', cluster: 'edge' } }));
  const { port } = proxy.listeners.get('main')!;
  t.after(async () => {
    await proxy.close();
    await upstream.close();
  });
  /** Status and Proxy-Status. */
  const ask = async (path: string, lines: readonly string[] = ['host: a.test']) => {
    const client = new WireClient(port);
    client.write(`${[`GET ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`);
    const { status, head } = await client.response();
    client.close();
    return [status, /^proxy-status: (.*)$/im.exec(head)?.[1]?.trim()];
  };
  return { port, ask };
}

test('a fault is told with its details, and no fault is not', async (t) => {
  const { ask } = await told(t, {});
  assert.deepEqual(await ask('/empty'), [
    503,
    'proxy; error=destination_unavailable; details="no_healthy_upstream; UH"',
  ]);
  assert.deepEqual(await ask('/none'), [404, 'proxy; error=destination_not_found; details="route_not_found; NR"']);
  assert.deepEqual(await ask('/web'), [200, undefined]);
  const [status, refused] = await ask('/away');
  assert.equal(status, 503);
  assert.match(refused as string, /^proxy; error=connection_refused; details="upstream_reset_before.*; UF"$/);
});

test('a request that cannot be read is told so', async (t) => {
  const { ask } = await told(t, {});
  assert.deepEqual(await ask('/web', ['host: a', 'x y: 1']), [
    400,
    'proxy; error=http_request_error; details="http1.codec_error{space_before_colon}; DPE"',
  ]);
});

test('an answer that retries have not bettered says so beside what its upstream has said', async (t) => {
  const answer = 'HTTP/1.1 500 No\r\ncontent-length: 0\r\nproxy-status: origin; error=proxy_internal_error\r\n\r\n';
  const { port } = await told(t, { set_recommended_response_code: true }, {}, answer);
  const client = new WireClient(port);
  client.write('GET /retried HTTP/1.1\r\nhost: a\r\n\r\n');
  const { status, head } = await client.response();
  client.close();
  // Its status is the upstream's.
  assert.equal(status, 500);
  assert.deepEqual(
    [...head.matchAll(/^proxy-status: (.*)\r$/gim)].map(([, value]) => value),
    ['origin; error=proxy_internal_error', 'proxy; error=destination_unavailable; details="via_upstream; URX"'],
  );
});

test('details and flags may be left out, and the name chosen', async (t) => {
  const withoutFlags = await told(t, { remove_response_flags: true, literal_proxy_name: 'edge-1' });
  assert.deepEqual(await withoutFlags.ask('/none'), [
    404,
    'edge-1; error=destination_not_found; details="route_not_found"',
  ]);
  // A name that is no token is a string.
  const ofNode = await told(t, { remove_details: true, use_node_id: true });
  assert.deepEqual(await ofNode.ask('/none'), [404, '"node 1"; error=destination_not_found']);
  const ofServer = await told(t, { remove_details: true, use_node_id: false }, { server_name: 'mine' });
  assert.deepEqual(await ofServer.ask('/none'), [404, 'mine; error=destination_not_found']);
});

test('replies get the status that goes with their fault where they are to', async (t) => {
  const { ask, port } = await told(t, { remove_details: true, set_recommended_response_code: true });
  assert.deepEqual(await ask('/none'), [500, 'proxy; error=destination_not_found']);
  assert.deepEqual(await ask('/away'), [502, 'proxy; error=connection_refused']);
  assert.deepEqual(await ask('/web'), [200, undefined]);
  const session: ClientHttp2Session = connectHttp2(`http://127.0.0.1:${port}`);
  t.after(() => session.close());
  const stream = session.request({ ':path': '/none' });
  const [headers] = await once(stream, 'response');
  stream.resume();
  assert.deepEqual([headers[':status'], headers['proxy-status']], [500, 'proxy; error=destination_not_found']);
  // A client of gRPC gets its own kind of status.
  const grpc = session.request({ ':path': '/none', ':method': 'POST', 'content-type': 'application/grpc' });
  const [answer] = await once(grpc, 'response');
  grpc.resume();
  assert.equal(answer[':status'], 200);
});

test('mappers see the status that there was, and theirs gives way to that of the fault', async (t) => {
  const filter = { status_code_filter: { comparison: { op: 'EQ', value: { default_value: 404, runtime_key: 'a' } } } };
  const local_reply_config = { mappers: [{ filter, status_code: 410, body: { inline_string: 'gone' } }] };
  const { ask } = await told(t, { remove_details: true, set_recommended_response_code: true }, { local_reply_config });
  assert.deepEqual(await ask('/none'), [500, 'proxy; error=destination_not_found']);
  const plain = await told(t, { remove_details: true }, { local_reply_config });
  assert.deepEqual(await plain.ask('/none'), [410, 'proxy; error=destination_not_found']);
});

test('the name of a node that has none is refused', async () => {
  const manager = { proxy_status_config: { use_node_id: true } };
  const listener = filteredListener([], ROUTES, { manager });
  await assert.rejects(
    createProxy(bootstrapOf([listener], [clusterAt('web', 1), clusterAt('away', 1), clusterAt('empty', 1)])),
    (error) =>
      error instanceof ConfigError && /proxy_status_config.use_node_id: there is no node.id/.test(error.message),
  );
});
