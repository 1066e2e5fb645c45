import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clusterNamed, faultTexts, type JsonObject, load } from '../../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0].transport_socket.typed_config';

function errors(validation_context: JsonObject): readonly string[] {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
    sni: 'a.test',
    auto_sni_san_validation: true,
    common_tls_context: { validation_context },
  };
  const cluster = clusterNamed('web', { transport_socket: { name: 'tls', typed_config } });
  return faultTexts(load({ static_resources: { clusters: [cluster] } }));
}

describe('a TLS context of a cluster', () => {
  it('wants authorities where names are to be verified, and one fault is enough where they cannot be read', () => {
    assert.deepEqual(errors({}), [
      `${AT}.auto_sni_san_validation: says nothing unless trusted_ca says whom to believe`,
    ]);
    assert.deepEqual(errors({ system_root_certs: {} }), []);
    const [fault, ...others] = errors({ trusted_ca: { filename: '/nowhere/ca.pem' } });
    assert.match(fault!, /validation_context\.trusted_ca: "\/nowhere\/ca\.pem" cannot be read: ENOENT/);
    assert.deepEqual(others, []);
  });
});
