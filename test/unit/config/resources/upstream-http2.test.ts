// Which protocol the configuration says for requests to a cluster, in each of its forms, and with which options.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../../../src/config/resources/http2-options.ts';
import type { UpstreamHttp2 } from '../../../../src/snapshot/index.ts';
import {
  clusterErrors,
  clusterNamed,
  clusterSettings,
  type Json,
  type JsonObject,
} from '../../../support/bootstrap.ts';
import { securely } from '../../../support/secure-upstream.ts';

const NAME = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const AT = 'static_resources.clusters[0]';
const OPTIONS_AT = `${AT}.typed_extension_protocol_options["${NAME}"]`;
const TYPES = 'type.googleapis.com/envoy.extensions.transport_sockets';
const BUFFER_LIMIT_BYTES = 1024 * 1024;

function typed(fields: JsonObject): JsonObject {
  return { typed_extension_protocol_options: { [NAME]: { '@type': `type.googleapis.com/${NAME}`, ...fields } } };
}

function http2Of(fields: JsonObject): UpstreamHttp2 | undefined {
  return clusterSettings(clusterNamed('web', fields)).http2;
}

function errorsOf(fields: JsonObject): readonly string[] {
  return clusterErrors(clusterNamed('web', fields));
}

describe('requests to a cluster', () => {
  const forms: readonly { name: string; fields: JsonObject; use: UpstreamHttp2['use'] | undefined }[] = [
    { name: 'nothing', fields: {}, use: undefined },
    { name: 'options of HTTP/2', fields: { http2_protocol_options: {} }, use: 'always' },
    {
      name: 'the protocol of clients',
      fields: { protocol_selection: 'USE_DOWNSTREAM_PROTOCOL' },
      use: 'like-client',
    },
    {
      name: 'the protocol of clients, with options of both',
      fields: { protocol_selection: 'USE_DOWNSTREAM_PROTOCOL', http_protocol_options: {}, http2_protocol_options: {} },
      use: 'like-client',
    },
    {
      name: 'HTTP/1 in the newer form',
      fields: typed({ explicit_http_config: { http_protocol_options: {} } }),
      use: undefined,
    },
    {
      name: 'HTTP/2 in the newer form',
      fields: typed({ explicit_http_config: { http2_protocol_options: {} } }),
      use: 'always',
    },
    {
      name: 'the protocol of clients in the newer form',
      fields: typed({ use_downstream_protocol_config: {} }),
      use: 'like-client',
    },
    {
      name: 'what hosts choose by ALPN',
      fields: { ...typed({ auto_config: {} }), ...securely() },
      use: 'by-alpn',
    },
  ];
  for (const { name, fields, use } of forms) {
    it(`follow ${name}`, () => {
      assert.equal(http2Of(fields)?.use, use);
    });
  }

  it('have the options of their form', () => {
    const options = { max_concurrent_streams: 7 };
    for (const fields of [
      { http2_protocol_options: options },
      { protocol_selection: 'USE_DOWNSTREAM_PROTOCOL', http2_protocol_options: options },
      typed({ explicit_http_config: { http2_protocol_options: options } }),
      typed({ use_downstream_protocol_config: { http2_protocol_options: options } }),
      { ...typed({ auto_config: { http2_protocol_options: options } }), ...securely() },
    ]) {
      assert.equal(http2Of(fields)!.settings.maxConcurrentStreams, 7);
    }
  });

  it('have a window as large as the buffers of a connection, unless somebody says another', () => {
    const windowOf = (http2: JsonObject, others: JsonObject = {}): number =>
      http2Of({ ...others, http2_protocol_options: http2 })!.settings.streamWindowBytes;
    assert.deepEqual(http2Of({ http2_protocol_options: {} })!.settings, {
      ...DEFAULT_HTTP2_SETTINGS,
      streamWindowBytes: BUFFER_LIMIT_BYTES,
    });
    assert.equal(windowOf({}, { per_connection_buffer_limit_bytes: 100_000 }), 100_000);
    assert.equal(windowOf({}, { per_connection_buffer_limit_bytes: 10 }), 65_535);
    assert.equal(windowOf({}, { per_connection_buffer_limit_bytes: 2 ** 30 }), 16 * 2 ** 20);
    assert.equal(windowOf({ initial_stream_window_size: 2 ** 28 }), 2 ** 28);
    assert.equal(windowOf({ custom_settings_parameters: [{ identifier: 4, value: 2 ** 27 }] }), 2 ** 27);
  });

  it('follow no choice by ALPN where a transport socket has none', () => {
    const plain = { name: 'plain', typed_config: { '@type': `${TYPES}.raw_buffer.v3.RawBuffer` } };
    const matched = (transport_socket: Json): JsonObject => ({
      transport_socket_matches: [{ name: 'some', match: {}, transport_socket }],
    });
    const secured = securely() as { readonly transport_socket: Json };
    const auto = typed({ auto_config: {} });
    const needed = 'needs TLS, by which hosts choose their protocol, in each transport socket of the cluster';
    const error = `${OPTIONS_AT}.auto_config: ${needed}`;
    assert.deepEqual(errorsOf(auto), [error]);
    assert.deepEqual(errorsOf({ ...auto, transport_socket: plain }), [error]);
    assert.deepEqual(errorsOf({ ...auto, ...secured, ...matched(plain) }), [error]);
    assert.deepEqual(errorsOf({ ...auto, ...secured, ...matched(secured.transport_socket) }), []);
  });

  it('are refused what this build cannot do, by name', () => {
    const at = OPTIONS_AT;
    assert.deepEqual(errorsOf(typed({ explicit_http_config: { http3_protocol_options: {} } })), [
      `${at}.explicit_http_config.http3_protocol_options: http3_protocol_options is not supported by this build: this build speaks no HTTP/3`,
    ]);
    const both = { http2_protocol_options: {}, ...typed({ explicit_http_config: { http2_protocol_options: {} } }) };
    assert.match(errorsOf(both)[0]!, /http2_protocol_options: has no place beside HttpProtocolOptions/);
  });
});
