// A fixed configuration for /config_dump: a bootstrap, and resources in all states as discovery would bring them.

import type { AdminServerOptions, ResourceView } from '../../../src/admin/index.ts';
import {
  clusterNamed,
  listenerWith,
  mustLoad,
  socketAddress,
  tcpFilter,
  withClusters,
  withListeners,
} from '../../support/bootstrap.ts';

type ConfigView = AdminServerOptions['config'];

const LOADED_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const SECRET = 'planted';

const BOOTSTRAP = `
node: { id: node-1, cluster: edge, metadata: { role: front, api_token: ${SECRET} } }
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 9901 } } }
static_resources:
  clusters:
  - { name: web, connect_timeout: 0.25s, lb_policy: RING_HASH, ring_hash_lb_config: { minimum_ring_size: 64 },
      load_assignment: { cluster_name: web, endpoints: [
        { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 8080 } } } } ] } ] } }
  - { name: legacy, connect_timeout: 1s, hosts: [ { socket_address: { address: 127.0.0.1, port_value: 8081 } } ] }
  listeners:
  - name: ingress
    address: { socket_address: { address: 0.0.0.0, port_value: 10000 } }
    filter_chains:
    - filters:
      - name: envoy.http_connection_manager
        config:
          stat_prefix: ingress
          http_filters: [ { name: envoy.router } ]
          route_config:
            name: front
            virtual_hosts:
            - name: all
              domains: [ '*' ]
              routes: [ { match: { prefix: / }, route: { cluster: web } } ]
              request_headers_to_add: [ { header: { key: authorization, value: ${SECRET} } } ]
`;

/** The message of what discovery has brought. */
function apiCluster(connectTimeout: string): Uint8Array {
  const { messages } = mustLoad(withClusters(clusterNamed('api', { connect_timeout: connectTimeout })));
  return messages.clusters[0]!;
}

function tcpListener(port: number): Uint8Array {
  const listener = listenerWith([tcpFilter({})], { name: 'tcp', address: socketAddress('127.0.0.1', port) });
  return mustLoad(withListeners(listener)).messages.listeners[0]!;
}

function resource(name: string, message: Uint8Array, fields: Partial<ResourceView> = {}): ResourceView {
  return {
    name,
    message,
    addedViaApi: true,
    version: '1',
    updatedMs: LOADED_MS,
    state: 'active',
    error: '',
    ...fields,
  };
}

const ENDPOINT = {
  hostname: '',
  health: 'HEALTHY',
  weight: 1,
  locality: { region: '', zone: '', subZone: '' },
  localityWeight: 0,
  priority: 0,
  metadata: {},
  check: { port: 0, hostname: '' },
} as const;

export const CONFIG: ConfigView = configOf();

function configOf(): ConfigView {
  const { messages } = mustLoad(BOOTSTRAP);
  const fixed = { addedViaApi: false, version: '' };
  const [newApi, failedApi] = [apiCluster('1s'), apiCluster('2s')];
  const [first, second, third] = [tcpListener(1), tcpListener(2), tcpListener(3)];
  return {
    bootstrap: { message: messages.bootstrap, secrets: [], updatedMs: LOADED_MS },
    clusters: () => ({
      version: '7',
      resources: [
        resource('web', messages.clusters[0]!, fixed),
        resource('legacy', messages.clusters[1]!, { ...fixed, state: 'warming' }),
        resource('api', newApi, { version: '6' }),
        resource('late', newApi, { state: 'warming', version: '7' }),
        resource('gone', newApi, { state: 'draining' }),
        resource('api', failedApi, { state: 'failed', version: '8', error: 'nothing left' }),
        resource('never', failedApi, { state: 'failed', version: '8', error: 'nothing left' }),
      ],
    }),
    routes: () => [],
    scopes: () => [],
    secrets: () => [],
    filters: () => [],
    listeners: () => ({
      version: '3',
      resources: [
        resource('ingress', messages.listeners[0]!, fixed),
        resource('tcp', first),
        resource('tcp', second, { state: 'warming', version: '2' }),
        resource('tcp', third, { state: 'draining', version: '0' }),
        resource('tcp', second, { state: 'failed', version: '3', error: 'address in use' }),
      ],
    }),
    endpoints: () => [
      {
        name: 'web',
        addedViaApi: false,
        overprovisioningFactor: 140,
        message: messages.clusters[0]!,
        assignment: undefined,
        endpoints: () => [
          { ...ENDPOINT, address: { kind: 'ip', ip: '127.0.0.1', port: 8080 } },
          { ...ENDPOINT, address: { kind: 'pipe', path: '/run/web.sock', mode: 0 }, priority: 1, localityWeight: 3 },
        ],
      },
      {
        name: 'api-service',
        addedViaApi: true,
        overprovisioningFactor: 100,
        message: newApi,
        assignment: undefined,
        endpoints: () => [
          {
            ...ENDPOINT,
            address: { kind: 'ip', ip: '::1', port: 443 },
            hostname: 'api.example',
            health: 'DEGRADED',
            weight: 5,
            locality: { region: 'eu', zone: 'eu-1', subZone: '' },
            metadata: { 'envoy.lb': { canary: true, password: SECRET } },
            check: { port: 8443, hostname: 'checks.example' },
          },
        ],
      },
    ],
  };
}
