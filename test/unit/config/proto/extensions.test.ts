import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EXTENSIONS } from '../../../../src/config/proto/extension-table.ts';
import {
  type ExtensionCategory,
  extensionPlace,
  extensionsOf,
  findExtension,
} from '../../../../src/config/proto/extensions.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';

const categories = Object.keys(EXTENSIONS) as ExtensionCategory[];

describe('extension names', () => {
  const SPELLINGS: readonly (readonly [ExtensionCategory, string, string])[] = [
    ['filters.network', 'envoy.http_connection_manager', 'proxy.filters.network.http_connection_manager'],
    ['filters.network', 'proxy.tcp_proxy', 'proxy.filters.network.tcp_proxy'],
    ['filters.network', 'envoy.filters.network.tcp_proxy', 'proxy.filters.network.tcp_proxy'],
    ['filters.http', 'envoy.router', 'proxy.filters.http.router'],
    ['filters.http', 'proxy.filters.http.router', 'proxy.filters.http.router'],
    ['filters.listener', 'envoy.listener.tls_inspector', 'proxy.filters.listener.tls_inspector'],
    ['transport_sockets.upstream', 'tls', 'proxy.transport_sockets.tls'],
    ['transport_sockets.downstream', 'envoy.transport_sockets.tls', 'proxy.transport_sockets.tls'],
    ['transport_sockets.downstream', 'raw_buffer', 'proxy.transport_sockets.raw_buffer'],
    ['access_loggers', 'envoy.file_access_log', 'proxy.access_loggers.file'],
    ['stats_sinks', 'envoy.statsd', 'proxy.stat_sinks.statsd'],
    ['tracers', 'envoy.dynamic.ot', 'proxy.tracers.dynamic_ot'],
    ['resolvers', 'envoy.ip', 'proxy.ip'],
    [
      'upstream_options',
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      'proxy.extensions.upstreams.http.v3.HttpProtocolOptions',
    ],
  ];
  for (const [category, name, canonical] of SPELLINGS) {
    it(`${name} is ${canonical}`, () => {
      assert.equal(findExtension(category, name)?.canonicalName, canonical);
    });
  }

  it('are unknown outside their category', () => {
    assert.equal(findExtension('filters.http', 'envoy.tcp_proxy'), undefined);
    assert.equal(findExtension('filters.http', 'acme.filters.http.magic'), undefined);
    assert.equal(findExtension('filters.http', 'router'), undefined);
  });

  it('are known even where the schema does not describe the settings', () => {
    assert.equal(findExtension('filters.network', 'envoy.mongo_proxy')?.config, 'undescribed');
    assert.equal(findExtension('clusters', 'envoy.cluster.strict_dns')?.config, 'none');
  });

  it('of one side of a TLS transport socket lead to the message of that side', () => {
    assert.match(findExtension('transport_sockets.upstream', 'tls')!.config, /\.UpstreamTlsContext$/);
    assert.match(findExtension('transport_sockets.downstream', 'tls')!.config, /\.DownstreamTlsContext$/);
  });

  it('lead to another message for a route where the filter has one', () => {
    assert.match(findExtension('filters.http', 'envoy.buffer')!.perRouteConfig, /\.BufferPerRoute$/);
    assert.match(findExtension('filters.http', 'envoy.fault')!.perRouteConfig, /\.HTTPFault$/);
  });

  it('stand once in each category', () => {
    for (const category of categories) {
      const names = extensionsOf(category).flatMap((extension) => extension.names);
      assert.deepEqual(names, [...new Set(names)], category);
    }
  });

  it('lead to messages that the schema has', () => {
    for (const extension of categories.flatMap(extensionsOf)) {
      for (const config of [extension.config, extension.perRouteConfig]) {
        if (config !== 'none' && config !== 'undescribed') assert.ok(protoSchema().find(config), config);
      }
    }
  });
});

describe('the place of an extension', () => {
  it('tells its category', () => {
    const holder = 'proxy.extensions.filters.network.http_connection_manager.v3.HttpFilter';
    assert.deepEqual(extensionPlace(holder, 'typed_config', false), { category: 'filters.http', isPerRoute: false });
  });

  it('tells the side of a transport socket', () => {
    const socket = 'proxy.config.core.v3.TransportSocket';
    assert.equal(extensionPlace(socket, 'typed_config', true)?.category, 'transport_sockets.upstream');
    assert.equal(extensionPlace(socket, 'config', false)?.category, 'transport_sockets.downstream');
  });

  it('tells settings of a route from those of the filter', () => {
    const route = 'proxy.config.route.v3.Route';
    for (const field of ['typed_per_filter_config', 'per_filter_config']) {
      assert.deepEqual(extensionPlace(route, field, false), { category: 'filters.http', isPerRoute: true });
    }
  });

  it('is open where any extension may stand', () => {
    assert.equal(extensionPlace('proxy.config.core.v3.TypedExtensionConfig', 'typed_config', false), undefined);
  });

  it('is named by messages that the schema has', () => {
    for (const name of ['proxy.config.accesslog.v3.AccessLog', 'proxy.config.core.v3.RetryPolicy.RetryPriority']) {
      assert.ok(extensionPlace(name, 'typed_config', false));
      assert.ok(protoSchema().find(name));
    }
  });
});
