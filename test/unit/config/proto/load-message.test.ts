import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import textformat from 'protobufjs/ext/textformat.js';
import type { Message } from 'protobufjs/light.js';
import { formatFault } from '../../../../src/config/fault.ts';
import { FaultList } from '../../../../src/config/fault-list.ts';
import { type AnyMessage, unpackAny } from '../../../../src/config/proto/any.ts';
import { loadMessage, readMessage } from '../../../../src/config/proto/load-message.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import { UnknownFieldPolicy } from '../../../../src/config/proto/unknown-fields.ts';
import { parseBytes } from '../../../../src/config/source/source.ts';
import { type Form, readText } from '../../../support/config/read.ts';
import { cpuTimeMs } from '../../../support/cpu-time.ts';

const BOOTSTRAP = 'config.bootstrap.v3.Bootstrap';
const bootstrapType = protoSchema().messageType(`proxy.${BOOTSTRAP}`);

const folder = mkdtempSync(path.join(tmpdir(), 'weir-load-'));
after(() => rmSync(folder, { recursive: true }));

const V3_BOOTSTRAP = `
node: { id: node, cluster: c, metadata: { weight: 5, tags: [a, b], on: true } }
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 9901 } } }
static_resources:
  clusters:
  - name: web
    connect_timeout: 0.25s
    type: STATIC
    lb_policy: RING_HASH
    ring_hash_lb_config: { minimum_ring_size: 1024, hash_function: MURMUR_HASH_2 }
    load_assignment:
      cluster_name: web
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 80 } } }
          load_balancing_weight: 3
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http_protocol_options: {} }
  listeners:
  - name: l
    address: { socket_address: { address: 0.0.0.0, port_value: 10000 } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: ingress
          route_config:
            name: r
            virtual_hosts:
            - name: v
              domains: ["*"]
              routes:
              - match: { prefix: / }
                route: { cluster: web, timeout: 15s }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
`;

/** Fields and values below a message, with every Any replaced by what it holds. */
function expand(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(expand);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  if ('type_url' in value && 'value' in value) {
    const content = unpackAny(value as AnyMessage);
    if (content !== undefined) return { type: content.type.fullName, content: expand(content.message) };
  }
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, expand(field)]));
}

function toForm(message: Message, form: Form): string | Uint8Array {
  if (form === 'text') return textformat.toText(bootstrapType, message);
  return bootstrapType.encode(message).finish();
}

interface SlotMessage {
  readonly typed_config: AnyMessage;
}

/** The configuration of the first filter of the first listener. */
function firstFilter(message: Record<string, unknown>): Message & Record<string, unknown> {
  const { listeners } = message.static_resources as { listeners: [{ filter_chains: [{ filters: unknown[] }] }] };
  return listeners[0].filter_chains[0].filters[0] as Message & Record<string, unknown>;
}

describe('forms', () => {
  const { message: fromYaml, faults } = readText(BOOTSTRAP, V3_BOOTSTRAP);

  test('one bootstrap reads to equal messages from YAML, JSON, binary and text', () => {
    assert.deepEqual(faults, []);
    const output = JSON.parse(JSON.stringify(toJsonTree(V3_BOOTSTRAP)));
    const sources: Readonly<Record<Form, string | Uint8Array>> = {
      yaml: V3_BOOTSTRAP,
      json: JSON.stringify(output),
      text: toForm(fromYaml, 'text'),
      binary: toForm(fromYaml, 'binary'),
    };
    for (const form of ['yaml', 'json', 'text', 'binary'] as const) {
      const read = readText(BOOTSTRAP, sources[form], { form });
      assert.deepEqual(read.faults, [], form);
      assert.deepEqual(expand(read.message), expand(fromYaml), form);
      // The text form is written with its maps in the order of their keys.
      if (form === 'text') continue;
      const bytes = Buffer.from(bootstrapType.encode(read.message).finish());
      assert.deepEqual(bytes, Buffer.from(bootstrapType.encode(fromYaml).finish()), form);
    }
  });

  test('the text form may expand an Any and is judged like the others', () => {
    const text = `static_resources { listeners { name: "l" filter_chains { filters {
      name: "envoy.filters.network.tcp_proxy"
      typed_config { [type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy] {
        stat_prefix: "t" clustr: "c" idle_timeout { seconds: 5 } max_connect_attempts { value: "5" }
      } } } } } }`;
    const read = readText(BOOTSTRAP, text, { form: 'text' });
    assert.deepEqual(
      read.faults.map((fault) => fault.replace(/^test.text:/, '')),
      [
        '4:26: static_resources.listeners[0].filter_chains[0].filters[0].typed_config.clustr: unknown field "clustr" in proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy; did you mean "cluster"?',
        '4:96: static_resources.listeners[0].filter_chains[0].filters[0].typed_config.max_connect_attempts.value: expected a number, got "5"',
      ],
    );
    const content = unpackAny(firstFilter(read.message).typed_config as AnyMessage)!;
    assert.equal((content.message as unknown as { stat_prefix: string }).stat_prefix, 't');
  });

  test('truncated and foreign bytes end in one fault', () => {
    const bytes = toForm(fromYaml, 'binary') as Uint8Array;
    const cut = readText(BOOTSTRAP, bytes.subarray(0, bytes.length - 5), { form: 'binary' }).faults;
    assert.equal(cut.length, 1);
    assert.match(cut[0]!, /^test.binary: not a binary Bootstrap message: /);
    assert.equal(readText(BOOTSTRAP, Buffer.from('%PDF-1.7 not a message'), { form: 'binary' }).faults.length, 1);
    assert.throws(
      () => readText(BOOTSTRAP, 'node { id: "n', { form: 'text' }),
      /test.text:1:12: .*string without an end/,
    );
  });
});

/** YAML as plain values by the reader's own rules, to be written as JSON. */
function toJsonTree(yaml: string): unknown {
  const { message } = readText('google.protobuf.Struct', yaml);
  const plain = (value: Record<string, unknown>): unknown => {
    const [key] = Object.keys(value).filter((name) => Object.hasOwn(value, name));
    const content = value[key!];
    if (key === 'structValue' || key === 'struct_value') return fields(content as { fields: object });
    if (key === 'listValue' || key === 'list_value') return (content as { values: never[] }).values.map(plain);
    return content;
  };
  const fields = (struct: { fields: object }): unknown =>
    Object.fromEntries(Object.entries(struct.fields).map(([key, value]) => [key, plain(value)]));
  return fields(message as unknown as { fields: object });
}

describe('extensions', () => {
  const HCM = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';

  function listener(filter: string): string {
    return `static_resources: { listeners: [{ filter_chains: [{ filters: [${filter}] }] }] }`;
  }

  function contentOf(filter: string) {
    const { message, faults: found, generation } = readText(BOOTSTRAP, listener(filter));
    assert.deepEqual(found, []);
    const read = firstFilter(message);
    assert.equal(read.config ?? null, null);
    const any = read.typed_config as AnyMessage;
    return { any, ...unpackAny(any)!, sourceGeneration: generation };
  }

  test('every way of writing a configuration ends in the same typed Any', () => {
    const fields = 'stat_prefix: s, cluster: c';
    const url = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';
    const ways = [
      `{ name: envoy.filters.network.tcp_proxy, typed_config: { "@type": ${url}, ${fields} } }`,
      `{ name: any, typed_config: { "@type": type.googleapis.com/proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy, ${fields} } }`,
      `{ name: any, typed_config: { "@type": x/envoy.config.filter.network.tcp_proxy.v2.TcpProxy, ${fields} } }`,
      `{ name: envoy.tcp_proxy, config: { ${fields} } }`,
      `{ config: { ${fields} }, name: proxy.tcp_proxy }`,
      `{ name: proxy.filters.network.tcp_proxy, typed_config: { "@type": x/google.protobuf.Struct, value: { ${fields} } } }`,
      `{ name: any, typed_config: { "@type": x/udpa.type.v1.TypedStruct, type_url: ${url}, value: { ${fields} } } }`,
      `{ name: any, typed_config: { "@type": x/xds.type.v3.TypedStruct, typeUrl: ${url}, value: { ${fields} } } }`,
    ];
    for (const way of ways) {
      const { type, message, any } = contentOf(way);
      assert.equal(type.fullName, '.proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy', way);
      assert.deepEqual(type.toObject(message), { stat_prefix: 's', cluster: 'c' }, way);
      assert.deepEqual(type.toObject(type.decode(any.value)), { stat_prefix: 's', cluster: 'c' }, way);
      assert.equal(unpackAny(any)!.message, message);
    }
  });

  test('the generation follows the name that was used', () => {
    const of = (filter: string) => {
      const { generation, message } = contentOf(filter);
      const { route_config: config } = message as unknown as {
        route_config: {
          virtual_hosts: [{ routes: [{ route: { host_rewrite: string; host_rewrite_literal: string } }] }];
        };
      };
      const { route } = config.virtual_hosts[0].routes[0];
      return [generation, route.host_rewrite_literal, route.host_rewrite];
    };
    const body = 'route_config: { virtual_hosts: [{ routes: [{ route: { host_rewrite: h } }] }] }';
    assert.deepEqual(of(`{ name: a, typed_config: { "@type": x/${HCM}, ${body} } }`), ['v3', '', 'h']);
    assert.deepEqual(of(`{ name: envoy.http_connection_manager, config: { ${body} } }`), ['v2', 'h', '']);
    const v2Url = 'x/envoy.config.filter.network.http_connection_manager.v2.HttpConnectionManager';
    assert.deepEqual(of(`{ name: a, typed_config: { "@type": ${v2Url}, ${body} } }`), ['v2', 'h', '']);
  });

  test('a name alone means the empty configuration', () => {
    const { message } = contentOf(
      `{ name: a, typed_config: { "@type": x/${HCM}, http_filters: [{ name: envoy.router }] } }`,
    );
    const [router] = (message as unknown as { http_filters: [{ typed_config: AnyMessage }] }).http_filters;
    assert.equal(unpackAny(router.typed_config)!.type.fullName, '.proxy.extensions.filters.http.router.v3.Router');
  });

  test('a tls transport socket is the upstream context in a cluster, the downstream one in a listener', () => {
    const socket = '{ name: tls, config: { common_tls_context: {} } }';
    const { message, faults: found } = readText(
      BOOTSTRAP,
      `static_resources: { clusters: [{ transport_socket: ${socket} }], listeners: [{ filter_chains: [{ transport_socket: ${socket} }] }] }`,
    );
    assert.deepEqual(found, []);
    const { clusters, listeners } = message.static_resources as {
      clusters: [{ transport_socket: { typed_config: AnyMessage } }];
      listeners: [{ filter_chains: [{ transport_socket: { typed_config: AnyMessage } }] }];
    };
    const name = (any: AnyMessage) => unpackAny(any)!.type.name;
    assert.equal(name(clusters[0].transport_socket.typed_config), 'UpstreamTlsContext');
    assert.equal(name(listeners[0].filter_chains[0].transport_socket.typed_config), 'DownstreamTlsContext');
  });

  test('opaque per-route configurations move to the typed map', () => {
    const { message, faults: found } = readText(
      'config.route.v3.Route',
      'per_filter_config: { envoy.buffer: { disabled: true }, envoy.fault: { max_active_faults: 5 } }',
    );
    assert.deepEqual(found, []);
    assert.deepEqual(Object.keys(message.per_filter_config as object), []);
    const typed = message.typed_per_filter_config as Record<string, AnyMessage>;
    const types = Object.entries(typed).map(([key, any]) => `${key} ${unpackAny(any)!.type.name}`);
    assert.deepEqual(types, ['envoy.buffer BufferPerRoute', 'envoy.fault HTTPFault']);
  });

  test('a type that nobody knows is kept where it is one of several to choose from', () => {
    const clusterWith = (typedConfig: string): string => `
      { static_resources: { clusters: [{ name: a, load_balancing_policy: { policies: [
        { typed_extension_config: { name: mine, typed_config: ${typedConfig} } } ] } }] } }`;
    const typeIn = (message: Record<string, unknown>): string => {
      const { clusters } = message.static_resources as {
        clusters: { load_balancing_policy: { policies: unknown[] } }[];
      };
      const [policy] = clusters[0]!.load_balancing_policy.policies as [{ typed_extension_config: SlotMessage }];
      return policy.typed_extension_config.typed_config.type_url;
    };
    for (const written of [
      '{ "@type": x/my.Balancer, some: field }',
      '{ "@type": x/xds.type.v3.TypedStruct, type_url: x/my.Balancer, value: { some: field } }',
    ]) {
      const read = readText(BOOTSTRAP, clusterWith(written));
      assert.deepEqual([typeIn(read.message), read.faults], ['x/my.Balancer', []]);
      for (const form of ['binary', 'text'] as const) {
        const again = readText(BOOTSTRAP, toForm(read.message as unknown as Message, form), { form });
        assert.deepEqual([typeIn(again.message), again.faults], ['x/my.Balancer', []]);
      }
    }
    const refused = readText(BOOTSTRAP, listener('{ name: mine, typed_config: { "@type": x/my.Balancer } }'));
    assert.equal(refused.faults.length, 1);
  });

  test('unknown names and types are refused, misspelt fields keep the path that was written', () => {
    const faultsOf = (filter: string) =>
      readText(BOOTSTRAP, listener(filter)).faults.map((fault) => fault.split('filters[0].')[1]);
    assert.deepEqual(faultsOf('{ name: envoy.tcp_prox, config: {} }'), [
      `name: Didn't find a registered implementation for name: 'envoy.tcp_prox'; did you mean "envoy.tcp_proxy"?`,
    ]);
    assert.deepEqual(faultsOf('{ name: mine, typed_config: { "@type": x/my.Filter } }'), [
      `typed_config: Didn't find a registered implementation for name: 'mine' with type URL: 'x/my.Filter'`,
    ]);
    assert.deepEqual(faultsOf('{ name: envoy.tcp_proxy, config: { stat_prefx: 5 } }'), [
      'config.stat_prefx: unknown field "stat_prefx" in proxy.extensions.filters.network.tcp_proxy.v3.TcpProxy; did you mean "stat_prefix"?',
    ]);
    assert.deepEqual(faultsOf('{ name: a, typed_config: { stat_prefix: s } }'), [
      'typed_config: expected "@type" with the type URL of this configuration',
    ]);
    assert.deepEqual(
      faultsOf('{ name: a, typed_config: { "@type": x/google.protobuf.Duration, value: 1s, other: 2 } }'),
      ['typed_config: expected only "value" beside "@type", got "other"'],
    );
    assert.equal(faultsOf('{ name: a, config: {}, typed_config: {} }').length, 2);
  });

  test('an opaque configuration in binary or text form is settled like one in YAML', () => {
    const yaml = listener('{ name: envoy.tcp_proxy, config: { stat_prefix: s, cluster: c, max_connect_attempts: 5 } }');
    const { message: expected } = readText(BOOTSTRAP, yaml);
    const struct = (value: object) => ({ fields: value });
    const text = (value: string) => ({ stringValue: value, string_value: value });
    const opaque = bootstrapType.fromObject({
      static_resources: {
        listeners: [
          {
            filter_chains: [
              {
                filters: [
                  {
                    name: 'envoy.tcp_proxy',
                    config: struct({
                      stat_prefix: text('s'),
                      cluster: text('c'),
                      max_connect_attempts: { numberValue: 5, number_value: 5 },
                    }),
                  },
                ],
              },
            ],
          },
        ],
      },
    });
    for (const form of ['binary', 'text'] as const) {
      const read = readText(BOOTSTRAP, toForm(opaque, form), { form });
      assert.deepEqual(read.faults, [], form);
      assert.deepEqual(expand(read.message), expand(expected), form);
      assert.equal(read.generation, 'v2');
    }
  });

  test('configurations nested without end are stopped before the stack is', () => {
    const filterConfig = protoSchema().messageType('proxy.config.route.v3.FilterConfig');
    const typeUrl = 'x/envoy.config.route.v3.FilterConfig';
    let value: Uint8Array = new Uint8Array();
    for (let level = 0; level < 3000; level += 1) {
      value = filterConfig.encode({ config: { type_url: typeUrl, value } }).finish();
    }
    const routeType = protoSchema().messageType('proxy.config.route.v3.Route');
    const route = routeType.encode({ typed_per_filter_config: { a: { type_url: typeUrl, value } } }).finish();
    const { faults: found } = readText('config.route.v3.Route', route, { form: 'binary' });
    assert.equal(found.length, 1);
    assert.match(found[0]!, /nested too deep$/);
  });
});

describe('--config-yaml over --config-path', () => {
  function load(file: string, configYaml: string) {
    const configPath = path.join(folder, 'base.yaml');
    writeFileSync(configPath, file);
    const faults = new FaultList();
    const unknownFields = new UnknownFieldPolicy('reject');
    const loaded = loadMessage(bootstrapType, { configPath, configYaml }, { faults, unknownFields });
    const shown = faults.all.map((fault) => formatFault(fault).replace(`${folder}/`, ''));
    return { loaded, faults: shown };
  }

  test('fields replace, messages merge, lists grow, map entries replace by key', () => {
    const { loaded, faults: found } = load(
      'node: { id: a, cluster: c, metadata: { k: 1, l: 1 } }\nstatic_resources: { clusters: [{ name: one }, { name: two }] }',
      'node: { id: b, metadata: { k: 2 } }\nstatic_resources: { clusters: [{ name: three }] }\nadmin: { access_log_path: /x }',
    );
    assert.deepEqual(found, []);
    const expected = readText(
      BOOTSTRAP,
      'node: { id: b, cluster: c, metadata: { k: 2, l: 1 } }\nstatic_resources: { clusters: [{ name: one }, { name: two }, { name: three }] }\nadmin: { access_log_path: /x }',
    );
    assert.deepEqual(loaded!.message, expected.message);
    const { line, file } = loaded!.document.positionOf('static_resources.clusters[2].name');
    assert.deepEqual([file, line], ['--config-yaml', 2]);
    assert.equal(loaded!.document.positionOf('static_resources.clusters[1].name').file, path.join(folder, 'base.yaml'));
    assert.equal(loaded!.document.positionOf('node.id').file, '--config-yaml');
    assert.equal(loaded!.document.positionOf('node.cluster').file, path.join(folder, 'base.yaml'));
  });

  test('a oneof member ousts the one below, an Any is replaced whole', () => {
    const { loaded } = load(
      'admin: { address: { socket_address: { address: a, port_value: 1 } } }',
      'admin: { address: { pipe: { path: /p } } }',
    );
    const { address } = (loaded!.message as unknown as { admin: { address: Record<string, unknown> } }).admin;
    assert.deepEqual(Object.keys(address), ['pipe']);
  });

  test('faults of both sources are reported together', () => {
    const { faults: found } = load('nod: {}', 'nodes: {}');
    assert.deepEqual(found, [
      'base.yaml:1:1: nod: unknown field "nod" in proxy.config.bootstrap.v3.Bootstrap; did you mean "node"?',
      '--config-yaml:1:1: nodes: unknown field "nodes" in proxy.config.bootstrap.v3.Bootstrap; did you mean "node"?',
    ]);
    assert.equal(load('a: [', 'b: [').faults.length, 2);
  });

  test('nothing at all is a fault of its own', () => {
    const faults = new FaultList();
    const unknownFields = new UnknownFieldPolicy('reject');
    assert.equal(loadMessage(bootstrapType, { configPath: '', configYaml: '' }, { faults, unknownFields }), undefined);
    assert.match(formatFault(faults.all[0]!), /at least one of --config-path and --config-yaml/);
  });
});

test('a damaged source ends in faults or in another message, never in an exception', () => {
  const { message } = readText(BOOTSTRAP, V3_BOOTSTRAP);
  const originals: Readonly<Record<Form, Buffer>> = {
    yaml: Buffer.from(V3_BOOTSTRAP),
    json: Buffer.from(JSON.stringify(toJsonTree(V3_BOOTSTRAP))),
    text: Buffer.from(toForm(message, 'text')),
    binary: Buffer.from(toForm(message, 'binary')),
  };
  const edits = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(fc.constantFrom<Form>('yaml', 'json', 'text', 'binary'), edits, fc.nat(), (form, changes, cut) => {
      const bytes = Buffer.from(originals[form]);
      for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
      const end = cut % 3 === 0 ? 1 + (cut % bytes.length) : bytes.length;
      const opened = parseBytes('damaged', form, bytes.subarray(0, end));
      if ('fault' in opened) return;
      const options = { faults: new FaultList(), unknownFields: new UnknownFieldPolicy('warn') };
      const read = readMessage(bootstrapType, opened.source, options);
      assert.ok(read !== undefined || options.faults.hasErrors);
      if (read !== undefined) bootstrapType.encode(read.message).finish();
    }),
    { numRuns: 600 },
  );
});

test('5,000 clusters in 2.4 MB of YAML are read in well under 1.5 s', () => {
  const cluster = (index: number) => `  - name: cluster_${index}
    connect_timeout: 0.25s
    type: STATIC
    lb_policy: ROUND_ROBIN
    per_connection_buffer_limit_bytes: 32768
    circuit_breakers:
      thresholds:
      - priority: DEFAULT
        max_connections: 1000
        max_requests: 2000
    load_assignment:
      cluster_name: cluster_${index}
      endpoints:
      - lb_endpoints:
        - endpoint:
            address:
              socket_address: { address: 127.0.0.1, port_value: ${8000 + (index % 1000)} }
`;
  const text = `static_resources:\n  clusters:\n${Array.from({ length: 5000 }, (_, index) => cluster(index)).join('')}`;
  const spent = cpuTimeMs(() => {
    const { message, faults } = readText(BOOTSTRAP, text);
    assert.deepEqual(faults, []);
    assert.equal((message.static_resources as { clusters: unknown[] }).clusters.length, 5000);
  });
  assert.ok(spent < 1500, `${spent} ms`);
});
