import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { disableExtensions, linkedExtensions } from '../../../../src/config/index.ts';
import { EXTENSIONS } from '../../../../src/extensions/control-registry.ts';
import {
  clusterNamed,
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  ROUTER,
  socketAddress,
  tcpFilter,
  withClusters,
  withListeners,
} from '../../../support/bootstrap.ts';
import { byServerName, toChain } from '../../../support/chain-trees.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';
const RAW = {
  name: 'envoy.transport_sockets.raw_buffer',
  typed_config: { '@type': `${TYPES}.transport_sockets.raw_buffer.v3.RawBuffer` },
};
const CLUSTER = 'static_resources.clusters[0]';
const LISTENER = 'static_resources.listeners[0]';

function errorsWithout(name: string, bootstrap: JsonObject): string[] {
  const { disabled, warnings } = disableExtensions([name], EXTENSIONS);
  assert.deepEqual(warnings, []);
  assert.deepEqual(faultTexts(load(bootstrap)), [], 'it is good otherwise');
  return faultTexts(load(bootstrap, { disabledExtensions: disabled }));
}

describe('an extension that is disabled', () => {
  const uses: readonly (readonly [extension: string, bootstrap: JsonObject, at: string, shown: string])[] = [
    [
      'envoy.filters.network/envoy.filters.network.tcp_proxy',
      withListeners(listenerWith([tcpFilter({})])),
      `${LISTENER}.filter_chains[0].filters[0].typed_config`,
      'envoy.filters.network.tcp_proxy',
    ],
    [
      'filters.network/http_connection_manager',
      withListeners(listenerWith([httpFilter({})])),
      `${LISTENER}.filter_chains[0].filters[0].typed_config`,
      'envoy.filters.network.http_connection_manager',
    ],
    [
      'proxy.filters.http/router',
      withListeners(listenerWith([httpFilter({ http_filters: [ROUTER] })])),
      `${LISTENER}.filter_chains[0].filters[0].typed_config.http_filters[0].typed_config`,
      'envoy.filters.http.router',
    ],
    [
      'envoy.access_loggers/envoy.access_loggers.stdout',
      withListeners(
        listenerWith([httpFilter({})], {
          access_log: [
            { name: 'mine', typed_config: { '@type': `${TYPES}.access_loggers.stream.v3.StdoutAccessLog` } },
          ],
        }),
      ),
      `${LISTENER}.access_log[0].typed_config`,
      'mine',
    ],
    [
      'clusters/cluster.strict_dns',
      withClusters(clusterNamed('web', { cluster_type: { name: 'envoy.cluster.strict_dns' } })),
      `${CLUSTER}.cluster_type`,
      'envoy.cluster.strict_dns',
    ],
    [
      'upstream_options/extensions.upstreams.http.v3.HttpProtocolOptions',
      withClusters(
        clusterNamed('web', {
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': `${TYPES}.upstreams.http.v3.HttpProtocolOptions`,
              explicit_http_config: { http_protocol_options: {} },
            },
          },
        }),
      ),
      `${CLUSTER}.typed_extension_protocol_options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]`,
      `${TYPES}.upstreams.http.v3.HttpProtocolOptions`,
    ],
    [
      'transport_sockets.upstream/raw_buffer',
      withClusters(clusterNamed('web', { transport_socket: RAW })),
      `${CLUSTER}.transport_socket.typed_config`,
      RAW.name,
    ],
  ];
  for (const [extension, bootstrap, at, shown] of uses) {
    it(`is refused where it is named: ${extension}`, () => {
      assert.deepEqual(errorsWithout(extension, bootstrap), [`${at}: "${shown}" is disabled by --disable-extensions`]);
    });
  }

  const implied: readonly (readonly [extension: string, bootstrap: JsonObject, at: string])[] = [
    ['clusters/cluster.static', withClusters(clusterNamed('web')), `${CLUSTER}.type`],
    ['clusters/cluster.logical_dns', withClusters(clusterNamed('web', { type: 'LOGICAL_DNS' })), `${CLUSTER}.type`],
    [
      'load_balancing_policies/load_balancing_policies.round_robin',
      withClusters(clusterNamed('web')),
      `${CLUSTER}.lb_policy`,
    ],
    [
      'load_balancing_policies/load_balancing_policies.maglev',
      withClusters(clusterNamed('web', { lb_policy: 'MAGLEV' })),
      `${CLUSTER}.lb_policy`,
    ],
    [
      'load_balancing_policies/load_balancing_policies.cluster_provided',
      withClusters({ name: 'web', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED' }),
      `${CLUSTER}.lb_policy`,
    ],
    [
      'load_balancing_policies/load_balancing_policies.subset',
      withClusters(clusterNamed('web', { lb_subset_config: { subset_selectors: [{ keys: ['a'] }] } })),
      `${CLUSTER}.lb_subset_config`,
    ],
    [
      'filters.listener/filters.listener.tls_inspector',
      withListeners(
        listenerWith([], {
          filter_chains: [{ filter_chain_match: { server_names: ['a.test'] }, filters: [tcpFilter({})] }],
        }),
      ),
      `${LISTENER}.filter_chains[0].filter_chain_match`,
    ],
    [
      'filters.listener/filters.listener.tls_inspector',
      withListeners(
        listenerWith([], {
          filter_chains: [{ name: 'a', filters: [tcpFilter({})] }],
          filter_chain_matcher: byServerName({ '*': toChain('a') }),
        }),
      ),
      `${LISTENER}.filter_chain_matcher`,
    ],
    ['transport_sockets.upstream/raw_buffer', withClusters(clusterNamed('web')), `${CLUSTER}.transport_socket`],
    [
      'transport_sockets.downstream/raw_buffer',
      { static_resources: { listeners: [listenerWith([httpFilter({})])] } },
      `${LISTENER}.filter_chains[0].transport_socket`,
    ],
    [
      'transport_sockets.downstream/raw_buffer',
      {
        static_resources: {
          listeners: [
            {
              name: 'main',
              address: socketAddress('127.0.0.1', 1),
              default_filter_chain: { filters: [httpFilter({})] },
            },
          ],
        },
      },
      `${LISTENER}.default_filter_chain.transport_socket`,
    ],
  ];
  for (const [extension, bootstrap, at] of implied) {
    it(`is refused where nothing else is named: ${extension} at ${at}`, () => {
      const errors = errorsWithout(extension, bootstrap);
      assert.equal(errors.length, 1, errors.join('\n'));
      assert.match(errors[0]!, /: stands for "proxy\..*", which is disabled by --disable-extensions$/);
      assert.ok(errors[0]!.startsWith(`${at}: `), errors.join());
    });
  }

  it('does no harm to what does not use it', () => {
    assert.deepEqual(errorsWithout('transport_sockets.downstream/raw_buffer', withClusters(clusterNamed('web'))), []);
    assert.deepEqual(
      errorsWithout(
        'transport_sockets.downstream/raw_buffer',
        withClusters(clusterNamed('web', { transport_socket: RAW })),
      ),
      [],
    );
    assert.deepEqual(errorsWithout('filters.http/filters.http.tap', withListeners(listenerWith([httpFilter({})]))), []);
  });
});

describe('names of extensions to disable', () => {
  it('are told of when they are no names of this build', () => {
    const names = [
      'acme',
      'acme/acme',
      'filters.http/acme',
      'filters.http/filters.http.wasm',
      'filters.http/filters.http.tap',
    ];
    const { done, warnings, disabled } = disableExtensions(names, EXTENSIONS);
    assert.deepEqual(warnings, [
      "failed to disable invalid extension name 'acme'",
      "failed to disable unknown extension 'acme/acme'",
      "failed to disable unknown extension 'filters.http/acme'",
      "failed to disable unknown extension 'filters.http/filters.http.wasm'",
    ]);
    assert.deepEqual(done, ['filters.http/filters.http.tap']);
    const marked = linkedExtensions(EXTENSIONS, disabled).filter((extension) => extension.disabled);
    assert.deepEqual(marked, [{ name: 'proxy.filters.http.tap', category: 'proxy.filters.http', disabled: true }]);
  });

  it('are those that are listed', () => {
    for (const { category, name } of linkedExtensions(EXTENSIONS)) {
      const spelt = `${category}/${name}`;
      const { done, disabled } = disableExtensions([spelt], EXTENSIONS);
      assert.deepEqual(done, [spelt]);
      const marked = linkedExtensions(EXTENSIONS, disabled).filter((extension) => extension.disabled);
      assert.deepEqual(marked, [{ name, category, disabled: true }]);
    }
  });
});
