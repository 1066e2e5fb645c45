import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clusterNamed, faultTexts, type JsonObject, load, member } from '../../../support/bootstrap.ts';

const ADS: JsonObject = { ads: {}, resource_api_version: 'V3' };
const FILE: JsonObject = { path_config_source: { path: '/sds.yaml' }, resource_api_version: 'V3' };

const over = (cluster_name: string, api_type = 'GRPC'): JsonObject => ({
  resource_api_version: 'V3',
  api_config_source: {
    api_type,
    transport_api_version: 'V3',
    ...(api_type === 'REST'
      ? { cluster_names: [cluster_name], refresh_delay: '1s' }
      : { grpc_services: [{ envoy_grpc: { cluster_name } }] }),
  },
});

/** Secured by a secret `own` of this source. */
function cluster(name: string, sds_config?: JsonObject): JsonObject {
  const type = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
  const common_tls_context = { tls_certificate_sds_secret_configs: [{ name: 'own', sds_config: sds_config ?? {} }] };
  const socket = { name: 'tls', typed_config: { '@type': type, common_tls_context } };
  const load_assignment = { cluster_name: name, endpoints: [{ lb_endpoints: [member(1)] }] };
  return clusterNamed(name, {
    load_assignment,
    http2_protocol_options: {},
    ...(sds_config && { transport_socket: socket }),
  });
}

function warnings(clusters: readonly JsonObject[], ...servers: readonly string[]): readonly string[] {
  const grpc_services = servers.map((cluster_name) => ({ envoy_grpc: { cluster_name } }));
  const ads_config = { api_type: 'GRPC', transport_api_version: 'V3', grpc_services };
  const result = load({
    node: { id: 'me', cluster: 'us' },
    static_resources: { clusters },
    dynamic_resources: { ads_config },
  });
  assert.deepEqual(faultTexts(result), []);
  return faultTexts(result, 'warning');
}

const never = (index: number, name: string, way = '', others = ''): string =>
  `static_resources.clusters[${index}].transport_socket: secret "own" is told over connections of cluster "${name}"${way}, ` +
  `which wait for it: it never comes${others}; have it in a file (path_config_source) or in the context itself`;

describe('a secret of a cluster that leads to a management server', () => {
  it('is warned of by both names where that server is to tell it, over whatever stream', () => {
    assert.deepEqual(warnings([cluster('control', ADS)], 'control'), [never(0, 'control')]);
    assert.deepEqual(warnings([cluster('control'), cluster('other', over('other'))], 'control'), [never(1, 'other')]);
    const rest = warnings([cluster('control'), cluster('other', over('other', 'REST'))], 'control');
    assert.deepEqual(rest, [never(1, 'other')]);
  });

  it('is warned of where it comes back to its cluster by way of another one', () => {
    const clusters = [cluster('control', over('other')), cluster('other', ADS)];
    assert.deepEqual(warnings(clusters, 'control'), [
      never(0, 'control', ' by way of cluster "other"'),
      never(1, 'other', ' by way of cluster "control"'),
    ]);
  });

  it('may come where another server stands in', () => {
    const clusters = [cluster('control', ADS), cluster('second')];
    assert.deepEqual(warnings(clusters, 'control', 'second'), [
      never(0, 'control', '', ', unless another server tells it'),
    ]);
  });

  it('is as good as any where it comes from elsewhere', () => {
    const clusters = [cluster('control', FILE), cluster('other', ADS), cluster('third', over('other'))];
    assert.deepEqual(warnings(clusters, 'control'), []);
  });
});
