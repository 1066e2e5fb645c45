// A file of resources that another thread has read says the same as one that is read here, word by word.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import {
  type DiscoveredResponse,
  digestResponse,
  encodeMessage,
  openDigest,
  openResponse,
  protoSchema,
  type ResourceType,
  RUNTIME_TYPE,
  type UnknownFieldMode,
  UnknownFieldPolicy,
} from '../../../../src/config/index.ts';
import { mustLoad } from '../../../support/bootstrap.ts';

const DISCOVERABLE = mustLoad({
  node: { id: 'me', cluster: 'us' },
  dynamic_resources: { cds_config: { path_config_source: { path: '/nowhere/response.yaml' } } },
}).discoverable;

const CLUSTERS = (): ResourceType<unknown> => DISCOVERABLE.clusters();
const LISTENERS = (): ResourceType<unknown> => DISCOVERABLE.listeners(['first']);
const RUNTIME = (): ResourceType<unknown> => RUNTIME_TYPE;

const YAML = `# A comment.
version_info: "12"
resources:
- &first
  "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: first
  connectTimeout: 0.25s
  load_assignment:
    cluster_name: first
    endpoints:
    - lb_endpoints:
      - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }
      - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 70000 } } }
- <<: *first
  name: merged
  odd_field: 5
  metadata: { filter_metadata: { "envoy.lb": { "a.b": [1, { c: true }] } } }
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: ""
  type: NEVER
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: first
  lb_policy: RING_HASH
  ring_hash_lb_config: { minimum_ring_size: 9000000 }
  typed_extension_protocol_options:
    envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
      explicit_http_config: { http2_protocol_options: { max_concurrent_streams: 0 } }
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: stranger
- "@type": type.googleapis.com/envoy.api.v2.Cluster
  name: older
  connect_timeout: 1s
  hosts: [{ socket_address: { address: 127.0.0.1, port_value: 80 } }]
  tls_context: {}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: otherwise
  ttl: 5s
  resource:
    "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: wrapped
    connect_timeout: -1s
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource: { "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: well-wrapped }
`;

const OLDER_LISTENER = JSON.stringify(
  {
    version_info: 'l',
    resources: [
      {
        '@type': 'type.googleapis.com/envoy.api.v2.Listener',
        name: 'in',
        address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
        filter_chains: [
          {
            filters: [
              {
                name: 'envoy.http_connection_manager',
                config: {
                  stat_prefix: 'x',
                  route_config: {
                    virtual_hosts: [
                      {
                        name: 'all',
                        domains: ['*'],
                        routes: [{ match: { prefix: '/' }, route: { cluster: 'nowhere', retry_policy: { odd: 1 } } }],
                      },
                    ],
                  },
                  http_filters: [{ name: 'envoy.router', config: { dynamic_stats: 'yes' } }],
                },
              },
            ],
          },
        ],
      },
      {
        '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
        name: 'typed',
        address: { socket_address: { address: 'nonsense', port_value: 1 } },
        filter_chains: [
          {
            filters: [
              {
                name: 'tcp',
                typed_config: {
                  '@type': 'type.googleapis.com/xds.type.v3.TypedStruct',
                  type_url: 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
                  value: { stat_prefix: '', cluster: 'first' },
                },
              },
            ],
          },
        ],
      },
    ],
  },
  null,
  1,
);

const TEXT = `version_info: "t"
resources {
  [type.googleapis.com/envoy.config.cluster.v3.Cluster] {
    name: "one"
    connect_timeout { seconds: -1 }
    metadata { filter_metadata { key: "a" value { fields { key: "b" value { number_value: 1 } } } } }
  }
}
resources {
  [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: "two" lb_policy: MAGLEV
    maglev_lb_config { table_size { value: 4 } } }
}
`;

function binary(): Uint8Array {
  const cluster = { name: 'one', connect_timeout: { seconds: -5, nanos: 0 } };
  const value = encodeMessage(protoSchema().messageType('proxy.config.cluster.v3.Cluster'), cluster);
  const type_url = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
  const resources = [
    { type_url, value },
    // The second field of it is cut off.
    { type_url, value: value.subarray(0, -1) },
  ];
  const message = { version_info: 'b', resources };
  return encodeMessage(protoSchema().messageType('proxy.service.discovery.v3.DiscoveryResponse'), message);
}

const FILES: readonly (readonly [name: string, content: string | Uint8Array, type: () => ResourceType<unknown>])[] = [
  ['clusters.yaml', YAML, CLUSTERS],
  ['asked-for-others.yaml', YAML, RUNTIME],
  ['listeners.json', OLDER_LISTENER, LISTENERS],
  ['clusters.pb_text', TEXT, CLUSTERS],
  ['clusters.pb', binary(), CLUSTERS],
  ['nothing.yaml', 'version_info: "1"\n', CLUSTERS],
  ['empty.yaml', '', CLUSTERS],
  ['broken.yaml', 'resources: [\n  {', CLUSTERS],
  ['no-list.yaml', 'resources: 5\nodd: 1\n', CLUSTERS],
  ['no-map.json', '{"resources": [5, {"@type": "x.y/z"}, null]}', CLUSTERS],
  ['unknown.txt', 'x', CLUSTERS],
];

/** All that is told of a response, with the bytes of its messages as text. */
function told(response: DiscoveredResponse<unknown>): unknown {
  const { version, extent, removed, names, warnings } = response;
  const resources = [...response.offered()].map((offered) => {
    const resource = offered.read();
    const print = offered.fingerprint();
    return { named: offered.name, print, ...resource, message: Buffer.from(resource.message).toString('hex') };
  });
  return { version, extent, removed, names, warnings, resources };
}

function fileOf(t: TestContext, name: string, content: string | Uint8Array): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-digest-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
}

describe('a response that another thread has read', () => {
  for (const mode of ['warn', 'reject', 'ignore'] satisfies UnknownFieldMode[]) {
    for (const [name, content, type] of FILES) {
      it(`says what it says here: ${name}, ${mode}`, async (t) => {
        const file = fileOf(t, name, content);
        const policy = new UnknownFieldPolicy(mode);
        const here = openResponse(file, policy);
        const digest = digestResponse({ file, mode, seen: [] });
        // As it comes over.
        const there = await openDigest(file, structuredClone(digest));
        assert.deepEqual(digest.metFields, [...policy.seen]);
        if ('faults' in here || 'faults' in there) {
          assert.deepEqual(there, here);
          return;
        }
        assert.deepEqual(there.warnings, here.warnings);
        for (const wanted of [undefined, new Set(['first', 'older']), new Set(['nobody'])]) {
          assert.deepEqual(told(there.of(type(), wanted)), told(here.of(type(), wanted)));
        }
      });
    }
  }

  it('does not warn of unknown fields that are known already', (t) => {
    const file = fileOf(t, 'clusters.yaml', YAML);
    const first = digestResponse({ file, mode: 'warn', seen: [] });
    const second = digestResponse({ file, mode: 'warn', seen: first.metFields });
    assert.equal(first.metFields.length > 0, true);
    assert.deepEqual(second.metFields, []);
    const warnings = ({ faults }: typeof first): number =>
      faults.filter(({ severity }) => severity === 'warning').length;
    assert.equal(warnings(first) - warnings(second), first.metFields.length);
  });

  it('does not keep all of its bytes for one of its resources', async (t) => {
    const file = fileOf(t, 'clusters.yaml', YAML);
    const opened = await openDigest(file, digestResponse({ file, mode: 'warn', seen: [] }));
    assert.ok('of' in opened);
    for (const offered of opened.of(CLUSTERS()).offered()) {
      const { message } = offered.read();
      assert.equal(message.buffer.byteLength, message.length);
    }
  });
});
