import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type BootstrapConfig, formatFault, type LoadBootstrapResult } from '../../../../src/config/index.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import {
  assigned,
  clusterNamed,
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  loadFile,
  member,
  mustLoad,
  socketAddress,
  withClusters,
  withListeners,
} from '../../../support/bootstrap.ts';
import { readText } from '../../../support/config/read.ts';

const FORMS = path.join(import.meta.dirname, 'front-proxy');

let folder = '';
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'weir-'));
});
after(() => rmSync(folder, { recursive: true }));

function fileWith(name: string, content: string | Uint8Array): string {
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
}

/** Without the messages, in which the generations differ. */
function settingsOf({ bootstrap, faults }: LoadBootstrapResult): Omit<BootstrapConfig, 'messages'> {
  assert.deepEqual(faults.map(formatFault), []);
  const { messages: _messages, ...settings } = bootstrap!;
  return settings;
}

describe('a bootstrap', () => {
  it('gives equal settings in v2 and v3, as YAML, JSON, text proto and binary', () => {
    const file = path.join(FORMS, 'v3.yaml');
    const expected = settingsOf(loadFile(file));
    assert.deepEqual([expected.clusters.length, expected.listeners.length], [1, 2]);
    for (const form of ['v2.yaml', 'bootstrap.json', 'bootstrap.pb_text']) {
      assert.deepEqual(settingsOf(loadFile(path.join(FORMS, form))), expected, form);
    }
    const typeName = 'config.bootstrap.v3.Bootstrap';
    const { message } = readText(typeName, readFileSync(file));
    const binary = fileWith('bootstrap.pb', protoSchema().messageType(`proxy.${typeName}`).encode(message!).finish());
    assert.deepEqual(settingsOf(loadFile(binary)), expected, 'binary');
  });

  it('says who the proxy is, how stats are tagged and flushed, and where the admin interface listens', () => {
    const settings = settingsOf(loadFile(path.join(FORMS, 'v3.yaml')));
    const { node, admin, statsFlushIntervalMs, statsFlushOnAdmin, fixedStatTags, useAllDefaultTags, headerPrefix } =
      settings;
    assert.deepEqual(node, {
      id: 'front-1',
      cluster: 'front',
      locality: { region: '', zone: 'a', subZone: '' },
      metadata: { tier: 1, tags: ['x', null] },
    });
    const { accessLogs, ...further } = admin!;
    assert.deepEqual(
      accessLogs.map(({ destination, filter }) => [destination, filter]),
      [[{ kind: 'file', path: '/dev/null' }, null]],
    );
    assert.deepEqual(further, {
      address: { kind: 'ip', ip: '127.0.0.1', port: 9901 },
      profilePath: '/var/log/proxy/proxy.prof',
      allowedPaths: [],
    });
    assert.deepEqual(
      [statsFlushIntervalMs, statsFlushOnAdmin, useAllDefaultTags, headerPrefix],
      [2000, false, false, 'x-edge'],
    );
    assert.deepEqual(fixedStatTags, [{ name: 'env', value: 'prod' }]);
  });

  it('may be empty: then nothing is served and nothing is administered', () => {
    const { listeners, clusters, admin, statsFlushIntervalMs, useAllDefaultTags } = mustLoad({});
    assert.deepEqual(
      [listeners, clusters, admin, statsFlushIntervalMs, useAllDefaultTags],
      [[], [], undefined, 5000, true],
    );
  });

  it('yields to the service options of the command line', () => {
    const options = { serviceNode: 'n', serviceCluster: 'c', serviceZone: 'z' };
    const { node } = loadFile(path.join(FORMS, 'v3.yaml'), options).bootstrap!;
    assert.deepEqual([node.id, node.cluster, node.locality.zone], ['n', 'c', 'z']);
  });

  it('is merged from a file and --config-yaml before it is checked', () => {
    const file = fileWith('lower.yaml', JSON.stringify(withListeners(listenerWith([httpFilter({})]))));
    const merged = loadFile(file, {
      configYaml: JSON.stringify({ node: { id: 'x' }, ...withClusters(clusterNamed('more')) }),
    });
    const settings = settingsOf(merged);
    assert.deepEqual(
      settings.clusters.map(({ name }) => name),
      ['web', 'more'],
    );
    const clash = loadFile(file, { configYaml: JSON.stringify(withClusters(clusterNamed('web'))) });
    assert.deepEqual(
      clash.faults.map(({ path: at, file: name, line }) => [at, name, line]),
      [['static_resources.clusters[1].name', '--config-yaml', 1]],
    );
    assert.equal(clash.bootstrap, undefined);
  });

  it('counts unknown fields that were allowed, and is refused for them otherwise', () => {
    const allowed = load({ nonsense: 1, header_prefx: 'x' }, { allowUnknownStaticFields: true });
    assert.equal(allowed.unknownFields, 2);
    assert.ok(allowed.bootstrap);
    assert.equal(load({ header_prefx: 'x' }).bootstrap, undefined);
  });
});

describe('deprecated fields of a bootstrap', () => {
  it('are counted by their names, wherever they are, and are no fault', () => {
    const endpoint = (name: string) => clusterNamed(name, { max_requests_per_connection: 5 });
    const header = { name: 'x', exact_match: 'y' };
    const route = { match: { prefix: '/', headers: [header] }, direct_response: { status: 200 } };
    const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'v', domains: ['*'], routes: [route] }] } });
    const listeners = [listenerWith([manager])];
    const result = load({ static_resources: { listeners, clusters: [endpoint('a'), endpoint('b')] } });
    assert.deepEqual(result.faults, []);
    assert.deepEqual([...result.deprecatedFields].sort(), [
      ['Cluster.max_requests_per_connection', 2],
      ['HeaderMatcher.exact_match', 1],
    ]);
    assert.equal(load(withClusters(clusterNamed('plain'))).deprecatedFields.size, 0);
  });

  it('are counted inside fields that are supported as a whole', () => {
    const check = {
      timeout: '1s',
      interval: '1s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      http_health_check: { path: '/', request_headers_to_add: [{ header: { key: 'a', value: 'b' }, append: false }] },
    };
    const safe_regex = { google_re2: { max_program_size: 9 }, regex: 'a' };
    const routes = [{ match: { safe_regex }, direct_response: { status: 200 } }];
    const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'v', domains: ['*'], routes }] } });
    const clusters = [clusterNamed('a', { health_checks: [check, check] })];
    const { deprecatedFields } = load({ static_resources: { listeners: [listenerWith([manager])], clusters } });
    assert.deepEqual([...deprecatedFields].sort(), [
      ['GoogleRE2.max_program_size', 1],
      ['HeaderValueOption.append', 2],
      ['RegexMatcher.google_re2', 1],
    ]);
  });
});

describe('a bootstrap is refused for', () => {
  const cases: readonly {
    readonly name: string;
    readonly bootstrap: JsonObject;
    readonly errors: readonly string[];
  }[] = [
    {
      name: 'two clusters of one name',
      bootstrap: withClusters(clusterNamed('a'), clusterNamed('b'), clusterNamed('a')),
      errors: ['static_resources.clusters[2].name: cluster "a" is already defined at static_resources.clusters[0]'],
    },
    {
      name: 'a local cluster that does not exist',
      bootstrap: { cluster_manager: { local_cluster_name: 'me' } },
      errors: ['cluster_manager.local_cluster_name: cluster "me" does not exist'],
    },
    {
      name: 'a local cluster with priorities',
      bootstrap: {
        ...withClusters(assigned([{ lb_endpoints: [member(1)] }, { priority: 1, lb_endpoints: [member(2)] }])),
        cluster_manager: { local_cluster_name: 'web' },
      },
      errors: [
        'static_resources.clusters[0].load_assignment.endpoints[1].priority: 1 is not 0, the only priority of a local cluster',
      ],
    },
    {
      name: 'discovery without an identity',
      bootstrap: { dynamic_resources: {} },
      errors: [
        'node.id: is required by dynamic_resources; set it here or with --service-node',
        'node.cluster: is required by dynamic_resources; set it here or with --service-cluster',
      ],
    },
    {
      name: 'runtime layers that cannot be told apart',
      bootstrap: {
        layered_runtime: { layers: ['a', 'a', 'b'].map((name) => ({ name, admin_layer: {} })) },
      },
      errors: [
        'layered_runtime.layers[1].name: runtime layer "a" is already defined at layered_runtime.layers[0]',
        'layered_runtime.layers[1]: an admin_layer is already defined at layered_runtime.layers[0]',
        'layered_runtime.layers[2]: an admin_layer is already defined at layered_runtime.layers[0]',
      ],
    },
    {
      name: 'a version that a gauge cannot hold',
      bootstrap: { stats_server_version_override: '9007199254740992' },
      errors: ['stats_server_version_override: 9007199254740992 exceeds the limit 9007199254740991'],
    },
    {
      name: 'two ways to flush stats, and fixed tags without a name of their own',
      bootstrap: {
        stats_flush_interval: '1s',
        stats_flush_on_admin: true,
        stats_config: { stats_tags: ['a', 'a', ''].map((tag_name) => ({ tag_name, fixed_value: 'v' })) },
      },
      errors: [
        'stats_flush_on_admin: is set together with stats_flush_interval; only one of them may be',
        'stats_config.stats_tags[1].tag_name: a second tag is called "a"',
        'stats_config.stats_tags[2].tag_name: must not be empty',
      ],
    },
    {
      name: 'stat tags, matchers and buckets that mean nothing',
      bootstrap: {
        stats_config: {
          stats_tags: [
            { tag_name: 'bad', regex: '(' },
            { tag_name: 'whole', regex: '^cluster' },
            { tag_name: 'unknown', regex: '' },
          ],
          stats_matcher: { exclusion_list: { patterns: [{ safe_regex: { regex: '(' } }] } },
          histogram_bucket_settings: [
            { buckets: [1] },
            { match: { prefix: 'a' }, buckets: [1, 0] },
            { match: { prefix: 'a' }, buckets: [5, 1, 5] },
            { match: { prefix: 'a' }, buckets: Array.from({ length: 513 }, (_, at) => at + 1) },
          ],
        },
      },
      errors: [
        'stats_config.stats_tags[0].regex: "(" is not a regular expression: missing ): (',
        'stats_config.stats_tags[1].regex: "^cluster" has no group that says what the tag is',
        'stats_config.stats_tags[2].tag_name: "unknown" is no default tag, and has neither a regex nor a fixed_value',
        'stats_config.stats_matcher.exclusion_list.patterns[0].safe_regex.regex: "(" is not a regular expression: missing ): (',
        'stats_config.histogram_bucket_settings[0].match: must be set',
        'stats_config.histogram_bucket_settings[1].buckets[1]: 0 is not above 0',
        'stats_config.histogram_bucket_settings[2].buckets: 5 appears more than once',
        'stats_config.histogram_bucket_settings[3].buckets: has 513 bounds, at most 512 are possible',
      ],
    },
    {
      name: 'paths of the admin interface by an expression that is none',
      bootstrap: {
        admin: {
          address: socketAddress('127.0.0.1', 9901),
          allow_paths: [{ exact: '/ready' }, { safe_regex: { google_re2: {}, regex: 'stats(' } }],
        },
      },
      errors: ['admin.allow_paths[1].safe_regex.regex: "stats(" is not a regular expression: missing ): stats('],
    },
    {
      name: 'an admin interface on a host name',
      bootstrap: { admin: { address: socketAddress('localhost', 9901) } },
      errors: [
        'admin.address.socket_address.address: "localhost" is not an IP address; the admin interface binds to an IP address',
      ],
    },
  ];
  for (const { name, bootstrap, errors } of cases) {
    it(name, () => {
      const result = load(bootstrap);
      assert.deepEqual(faultTexts(result).toSorted(), errors.toSorted());
      assert.equal(result.bootstrap, undefined);
    });
  }

  it('neither file nor text', () => {
    assert.deepEqual(faultTexts(load('')), [': at least one of --config-path and --config-yaml must be given']);
  });
});

const FAULTY = `
static_resources:
  listeners:
  - name: main
    address: { socket_address: { address: 127.0.0.1, port_value: 70000 } }
    filter_chains:
    - filters:
      - name: envoy.http_connection_manager
        config:
          stat_prefix: in
          codec_type: HTTP3
          http3_protocol_options: {}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: { prefix: / }
                route: { cluster: wbe, timeout: soon }
          http_filters: [{ name: envoy.nonsense }, { name: envoy.router }]
  clusters:
  - name: web
    lbpolicy: MAGLEV
    lrs_report_endpoint_metrics: [a]
    hosts: [{ pipe: { path: /x } }]
  - name: web
    lrs_report_endpoint_metrics: [a]
    hosts: [{ pipe: { path: /x } }]
`;

describe('the faults of a bootstrap', () => {
  it('come all at once, in the order of the file, each with its place', () => {
    const file = fileWith('faulty.yaml', FAULTY);
    const { faults } = loadFile(file);
    const hcm = 'static_resources.listeners[0].filter_chains[0].filters[0].config';
    const expected = [
      ['error', 5, 'static_resources.listeners[0].address.socket_address.port_value'],
      ['error', 11, `${hcm}.codec_type`],
      ['warning', 12, `${hcm}.http3_protocol_options`],
      ['error', 19, `${hcm}.route_config.virtual_hosts[0].routes[0].route.cluster`],
      ['error', 19, `${hcm}.route_config.virtual_hosts[0].routes[0].route.timeout`],
      ['error', 20, `${hcm}.http_filters[0].name`],
      ['error', 23, 'static_resources.clusters[0].lbpolicy'],
      ['warning', 24, 'static_resources.clusters[0].lrs_report_endpoint_metrics'],
      ['error', 26, 'static_resources.clusters[1].name'],
    ];
    assert.deepEqual(
      faults.map(({ severity, line, path: at }) => [severity, line, at]),
      expected,
    );
    assert.ok(faults.every((fault) => fault.file === file && fault.column > 0));
    assert.equal(
      formatFault(faults[3]!),
      `${file}:19:35: ${expected[3]![2]}: cluster "wbe" does not exist; did you mean "web"?`,
    );
  });

  it('leave out what only follows from a value that could not be read', () => {
    const cluster = {
      name: 'web',
      load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [{ endpoint: [] }] }] },
    };
    assert.equal(faultTexts(load(withClusters(cluster))).length, 1);
    const unreadablePort = { name: 'web', hosts: [{ socket_address: { address: '10.0.0.1', port_value: 'http' } }] };
    assert.equal(faultTexts(load(withClusters(unreadablePort))).length, 1);
  });

  it('include a stat tag that picks a default by its name alone where all of them are used', () => {
    const tags = (use_all_default_tags: boolean) => ({
      stats_config: { use_all_default_tags, stats_tags: [{ tag_name: 'envoy.cluster_name' }] },
    });
    assert.match(faultTexts(load(tags(true)), 'warning').join(), /adds nothing to use_all_default_tags/);
    assert.deepEqual(faultTexts(load(tags(false)), 'warning'), []);
    assert.deepEqual(mustLoad(tags(false)).defaultStatTags, ['proxy.cluster_name']);
  });

  it('repeat no warning that many clusters share, but count it', () => {
    const clusters = Array.from({ length: 3 }, (_, index) => clusterNamed(`c${index}`, { lrs_server: {} }));
    assert.deepEqual(faultTexts(load(withClusters(...clusters)), 'warning'), [
      'static_resources.clusters[0].lrs_server: lrs_server is not supported by this build; cluster_manager.load_stats_config names the server that asks for load, of whatever cluster (here and at 2 more)',
    ]);
  });
});

describe('the prefix of the proxy’s own headers', () => {
  it('must be able to begin a header name, and short enough to be recognized', () => {
    assert.deepEqual(faultTexts(load({ header_prefix: 'x-acme' })), []);
    assert.deepEqual(faultTexts(load({ header_prefix: 'x acme-' })), [
      'header_prefix: "x acme-" cannot begin header names',
    ]);
    assert.deepEqual(faultTexts(load({ header_prefix: 'x-sixteen-long-1' })), [
      'header_prefix: 16 characters exceed the limit 15',
    ]);
  });
});
