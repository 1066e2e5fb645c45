// What a user is told who asks for an extension that this build does not have.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lackingExtensions } from '../../../../src/config/proto/lacking-extensions.ts';
import { REFUSED_WITH_REASON } from '../../../../src/config/proto/read-context.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import { verdictOn } from '../../../../src/config/support/check.ts';
import { supportWith } from '../../../../src/config/support/index.ts';
import { EXTENSIONS } from '../../../../src/extensions/control-registry.ts';
import {
  clusterNamed,
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  tcpFilter,
  withClusters,
  withListeners,
  withRoutes,
} from '../../../support/bootstrap.ts';
import { withHttpFilter } from '../../../support/filter-config.ts';

const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http_filters[0].typed_config: ';

function saidOf(name: string, type: string): string {
  const [text] = faultTexts(load(withHttpFilter(name, `envoy.extensions.filters.http.${type}`, {})));
  return text!.replace(AT, '');
}

describe('an HTTP filter that is not there', () => {
  it('is refused by its name, with what to do instead', () => {
    const own = 'a filter of your own can do what it does (docs/filters.md)';
    const sentences: Record<string, string> = {
      'wasm.v3.Wasm': own,
      'golang.v3alpha.Config': own,
      'dynamic_modules.v3.DynamicModuleFilter': own,
      'ext_proc.v3.ExternalProcessor': 'a filter of your own can call a cluster (docs/filters.md)',
      'oauth2.v3.OAuth2': 'jwt_authn verifies tokens, and ext_authz asks a service that logs users in',
    };
    for (const [type, sentence] of Object.entries(sentences)) {
      const name = `envoy.filters.http.${type.split('.')[0]}`;
      assert.equal(saidOf(name, type), `"${name}" is not supported by this build: ${sentence}`);
    }
  });

  it('is found by the type of its settings, whatever it is called', () => {
    const said = 'is not supported by this build: a filter of your own can do what it does (docs/filters.md)';
    assert.equal(saidOf('greeting', 'wasm.v3.Wasm'), `"greeting" (envoy.extensions.filters.http.wasm.v3.Wasm) ${said}`);
    const type = 'envoy.config.filter.http.aws_lambda.v2alpha.Config';
    const older = withHttpFilter('greeting', type, {});
    assert.equal(faultTexts(load(older))[0]!.replace(AT, ''), `"greeting" (${type}) ${said}`);
  });

  it('is found in a TypedStruct', () => {
    const struct = withHttpFilter('greeting', 'xds.type.v3.TypedStruct', {
      type_url: 'type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm',
      value: { config: {} },
    });
    assert.match(
      faultTexts(load(struct))[0]!,
      /"greeting" \(envoy\.extensions\.filters\.http\.wasm\.v3\.Wasm\) is not/,
    );
  });

  it('is not mistaken for another by its name alone', () => {
    const text = JSON.stringify(withHttpFilter('envoy.filters.http.kill_request', 'x', {}));
    const [said] = faultTexts(load(JSON.parse(text.replace(',"typed_config":{"@type":"type.googleapis.com/x"}', ''))));
    assert.match(said!, /"envoy\.filters\.http\.kill_request" is not supported by this build: POST \/quitquitquit/);
  });

  it('that nobody knows is left out where it is optional', () => {
    const text = JSON.stringify(withHttpFilter('magic', 'acme.filters.Magic', { spell: 'open' }));
    const result = load(JSON.parse(text.replace('{"name":"magic"', '{"is_optional":true,"name":"magic"')));
    assert.deepEqual(faultTexts(result, 'error'), []);
    assert.equal(
      faultTexts(result, 'warning')[0]!.replace(AT, ''),
      '"magic" is not supported by this build; it is left out, being optional',
    );
  });

  it('is left out where it is optional', () => {
    const bootstrap = withHttpFilter('envoy.filters.http.wasm', 'envoy.extensions.filters.http.wasm.v3.Wasm', {});
    const text = JSON.stringify(bootstrap).replace(
      '{"name":"envoy.filters.http.wasm"',
      '{"is_optional":true,"name":"envoy.filters.http.wasm"',
    );
    const result = load(JSON.parse(text));
    assert.deepEqual(faultTexts(result, 'error'), []);
    assert.match(faultTexts(result, 'warning')[0]!, /\(docs\/filters\.md\); it is left out, being optional$/);
  });
});

describe('an extension that is not there', () => {
  const type = (name: string, fields: JsonObject = {}): JsonObject => ({
    '@type': `type.googleapis.com/${name}`,
    ...fields,
  });
  const extension = (name: string, fields: JsonObject = {}): JsonObject => ({
    name: 'mine',
    typed_config: type(`envoy.extensions.${name}`, fields),
  });
  const ofRoute = (fields: JsonObject): JsonObject =>
    withRoutes({
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'web' }, ...fields }] },
      ],
    });
  const ofCluster = (fields: JsonObject): JsonObject => withClusters(clusterNamed('web', fields));

  const CASES: Readonly<Record<string, readonly [JsonObject, RegExp]>> = {
    'a network filter': [
      withListeners(listenerWith([extension('filters.network.thrift_proxy.v3.ThriftProxy')])),
      /tcp_proxy carries it, to one cluster$/,
    ],
    'a listener filter': [
      withListeners(listenerWith([tcpFilter({})], { listener_filters: [extension('filters.listener.wasm.v3.Wasm')] })),
      /rbac and ext_authz judge connections/,
    ],
    'a filter of datagrams': [
      withListeners(
        listenerWith([tcpFilter({})], { listener_filters: [extension('filters.udp.dns_filter.v3.DnsFilterConfig')] }),
      ),
      /a DNS server behind udp_proxy can answer$/,
    ],
    'a transport socket': [
      ofCluster({ transport_socket: extension('transport_sockets.tcp_stats.v3.Config') }),
      /write the socket inside it alone/,
    ],
    'a type of cluster': [
      ofCluster({ cluster_type: extension('clusters.composite.v3.ClusterConfig') }),
      /aggregate goes through clusters in their order$/,
    ],
    'a health checker': [
      ofCluster({
        health_checks: [
          {
            timeout: '1s',
            interval: '1s',
            unhealthy_threshold: 1,
            healthy_threshold: 1,
            custom_health_check: extension('health_checkers.thrift.v3.Thrift'),
          },
        ],
      }),
      /tcp_health_check asks whether hosts accept connections$/,
    ],
    'a resolver': [
      ofCluster({
        typed_dns_resolver_config: extension('network.dns_resolver.getaddrinfo.v3.GetAddrInfoDnsResolverConfig'),
      }),
      /without it names are asked of the servers/,
    ],
    'a sink of statistics': [{ stats_sinks: [extension('stat_sinks.wasm.v3.Wasm')] }, /dog_statsd/],
    'a monitor': [
      {
        overload_manager: {
          resource_monitors: [extension('resource_monitors.cpu_utilization.v3.CpuUtilizationConfig')],
        },
      },
      /cgroup_memory/,
    ],
    'a matcher by CEL': [
      ofRoute({
        route: {
          cluster: 'web',
          rate_limits: [{ actions: [{ extension: extension('rate_limit_descriptors.expr.v3.Descriptor') }] }],
        },
      }),
      /there is no CEL; header_value_match/,
    ],
    'a library': [
      withHttpFilter('compressor', 'envoy.extensions.filters.http.compressor.v3.Compressor', {
        compressor_library: extension('compression.qatzip.compressor.v3alpha.Qatzip'),
      }),
      /gzip, brotli and zstd are there$/,
    ],
  };
  for (const [what, [bootstrap, sentence]] of Object.entries(CASES)) {
    it(`is refused by name and type, with what to do: ${what}`, () => {
      const said = faultTexts(load(bootstrap)).find((text) => text.includes('"mine" (envoy.extensions.'));
      assert.ok(said, faultTexts(load(bootstrap)).join('\n'));
      assert.match(said, / is not supported by this build: /);
      assert.match(said, sentence);
    });
  }

  it('stands without an error in fields that are left out whatever they hold', () => {
    const magic = { name: 'magic', typed_config: type('acme.Magic', { spell: 'open' }) };
    const rules = { policies: {}, audit_logging_options: { logger_configs: [{ audit_logger: magic }] } };
    const cases: Readonly<Record<string, JsonObject>> = {
      early_data_policy: ofRoute({ route: { cluster: 'web', early_data_policy: magic } }),
      audit_logging_options: withHttpFilter('rbac', 'envoy.extensions.filters.http.rbac.v3.RBAC', { rules }),
      'formatters\\[0\\].typed_config': withListeners(
        listenerWith([
          httpFilter({
            access_log: [
              {
                name: 'stdout',
                typed_config: type('envoy.extensions.access_loggers.stream.v3.StdoutAccessLog', {
                  log_format: { text_format_source: { inline_string: '%PROTOCOL%' }, formatters: [magic] },
                }),
              },
            ],
          }),
        ]),
      ),
      xds_delegate_extension: { xds_delegate_extension: magic },
      xds_config_tracker_extension: { xds_config_tracker_extension: magic },
    };
    for (const [field, bootstrap] of Object.entries(cases)) {
      const result = load(bootstrap);
      assert.deepEqual(faultTexts(result, 'error'), [], field);
      const [warning = '', ...others] = faultTexts(result, 'warning');
      assert.match(warning, new RegExp(`${field}: .* is not supported by this build; `));
      assert.deepEqual(others, []);
    }
  });

  it('is refused with the reason of its field where that is refused whatever it holds', () => {
    const table = supportWith(EXTENSIONS);
    for (const place of REFUSED_WITH_REASON) {
      const [holder, field] = place.split(' ') as [string, string];
      const verdict = verdictOn(table, holder.slice(1), field);
      assert.ok(verdict.kind === 'unsupported' && verdict.severity === 'error' && verdict.note !== '', place);
    }
    const custom = { custom: { name: 'magic', typed_config: type('acme.Magic') } };
    const bootstrap = ofRoute({ match: { prefix: '/', headers: [{ name: 'a', string_match: custom }] } });
    const [fault, ...others] = faultTexts(load(bootstrap), 'error');
    assert.match(fault!, /\.custom: custom is not supported by this build: use exact, prefix, suffix/);
    assert.deepEqual(others, []);
    const lua = { custom: { name: 'magic', typed_config: type('envoy.extensions.string_matcher.lua.v3.Lua') } };
    const known = ofRoute({ match: { prefix: '/', headers: [{ name: 'a', string_match: lua }] } });
    assert.match(
      faultTexts(load(known), 'error')[0]!,
      /"magic" \(envoy\.extensions\.string_matcher\.lua\.v3\.Lua\) is not/,
    );
  });

  it('has types of its own, which lead to nothing that is there', () => {
    for (const { names, types } of lackingExtensions()) {
      for (const each of types) assert.equal(protoSchema().find(each), undefined, `${names[0]}: ${each}`);
    }
  });
});
