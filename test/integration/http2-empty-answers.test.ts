// Answers that an HTTP/2 upstream ends with their heads, which say nothing of a length: a client of HTTP/1.1 whose connection stays has to
// hear that there is nothing to wait for.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { bootstrapOf, clusterAt, createProxy, httpListener } from '../support/embedded.ts';
import { readAnswer } from '../support/recoded-bodies.ts';
import { WireClient } from '../support/wire.ts';

const OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

it('are announced as empty, where an answer could have a body', async (t) => {
  const upstream = createServer();
  upstream.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.respond({ ':status': Number(String(headers[':path']).slice(1)) }, { endStream: true });
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  t.after(() => upstream.close());
  const cluster = clusterAt('web', (upstream.address() as AddressInfo).port, {
    typed_extension_protocol_options: {
      [OPTIONS]: { '@type': `type.googleapis.com/${OPTIONS}`, explicit_http_config: { http2_protocol_options: {} } },
    },
  });
  await using proxy = await createProxy(bootstrapOf([httpListener('main', 'web')], [cluster]));
  const client = new WireClient(proxy.listeners.get('main')!.port);
  t.after(() => client.close());
  for (const status of [200, 404, 503]) {
    client.write(`GET /${status} HTTP/1.1\r\nhost: a\r\n\r\n`);
    const answer = await readAnswer(client);
    assert.deepEqual([answer.status, answer.headers['content-length'], answer.body.length], [status, '0', 0]);
  }
  for (const status of [204, 304]) {
    client.write(`GET /${status} HTTP/1.1\r\nhost: a\r\n\r\n`);
    const answer = await readAnswer(client, false);
    assert.deepEqual([answer.status, answer.headers['content-length']], [status, undefined]);
  }
  client.write('HEAD /200 HTTP/1.1\r\nhost: a\r\n\r\n');
  const { status, headers } = await readAnswer(client, false);
  assert.deepEqual([status, headers['content-length']], [200, undefined]);
});
