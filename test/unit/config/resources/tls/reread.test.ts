import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TlsReader } from '../../../../../src/config/index.ts';
import { clusterNamed, type JsonObject, mustLoad } from '../../../../support/bootstrap.ts';

const SOCKETS = 'type.googleapis.com/envoy.extensions.transport_sockets';

function tls(sni: string): JsonObject {
  return { name: 'tls', typed_config: { '@type': `${SOCKETS}.tls.v3.UpstreamTlsContext`, sni } };
}

const RAW: JsonObject = { name: 'raw', typed_config: { '@type': `${SOCKETS}.raw_buffer.v3.RawBuffer` } };

/** What is read again of a cluster, beside what was read at first; by the names of servers. */
function readAgain(fields: JsonObject): (string | undefined)[] {
  const { messages, clusters } = mustLoad({ static_resources: { clusters: [clusterNamed('web', fields)] } });
  const contexts = new TlsReader({ secrets: messages.secrets }).readCluster(messages.clusters[0]!);
  const { tls: own, transportSocketMatches = [] } = clusters[0]!;
  assert.deepEqual(
    contexts.map((context) => context?.settings),
    [own, ...transportSocketMatches.map((match) => match.tls)],
  );
  return contexts.map((context) => context?.settings.serverName);
}

describe('the TLS contexts of a cluster', () => {
  it('are read again where they stand', () => {
    assert.deepEqual(readAgain({}), [undefined]);
    assert.deepEqual(readAgain({ transport_socket: RAW }), [undefined]);
    assert.deepEqual(readAgain({ transport_socket: tls('a.example') }), ['a.example']);
    assert.deepEqual(readAgain({ tls_context: { sni: 'older.example' } }), ['older.example']);
  });

  it('are read again within a transport socket that sends a PROXY header', () => {
    const typed_config = {
      '@type': `${SOCKETS}.proxy_protocol.v3.ProxyProtocolUpstreamTransport`,
      transport_socket: tls('a.example'),
    };
    assert.deepEqual(readAgain({ transport_socket: { name: 'proxy', typed_config } }), ['a.example']);
  });

  it('are read again with those of its matches, in their places', () => {
    const transport_socket_matches = [
      { name: 'plain', match: { mode: 'plain' }, transport_socket: RAW },
      { name: 'tls', match: { mode: 'tls' }, transport_socket: tls('b.example') },
    ];
    assert.deepEqual(readAgain({ transport_socket_matches }), [undefined, undefined, 'b.example']);
  });

  it('are read once where they are alike', () => {
    const fields = { transport_socket: tls('a.example') };
    const { messages } = mustLoad({
      static_resources: { clusters: [clusterNamed('one', fields), clusterNamed('two', fields)] },
    });
    const reader = new TlsReader({ secrets: [] });
    const [one, two] = messages.clusters.map((message) => reader.readCluster(message)[0]);
    assert.ok(one !== undefined);
    assert.equal(one, two);
  });
});
