// Configuration of listeners that speak TLS, for tests of the real program.

import type { TestCertificate } from './certificates.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';
const TLS = `${TYPES}.transport_sockets.tls.v3`;

export interface TlsListenerOptions {
  /** Fields of its CommonTlsContext. */
  readonly common?: object;
  /** Fields of its DownstreamTlsContext. */
  readonly context?: object;
  /** Fields of its filter chain. */
  readonly chain?: object;
  /** Fields of its connection manager. */
  readonly http?: object;
  /** Fields of the listener itself. */
  readonly fields?: object;
}

/** A certificate and its key by the paths of their files. */
export function pair({ certificatePath, keyPath }: Pick<TestCertificate, 'certificatePath' | 'keyPath'>): object {
  return { certificate_chain: { filename: certificatePath }, private_key: { filename: keyPath } };
}

/** A resource of secret discovery, by the name of its message. */
export function tlsMessage(name: string, fields: object): object {
  return { '@type': `${TLS}.${name}`, ...fields };
}

/** Secures a filter chain. */
export function tlsSocket(common: object, context: object = {}): object {
  return { name: 'tls', typed_config: tlsMessage('DownstreamTlsContext', { common_tls_context: common, ...context }) };
}

/** Answers everything by itself unless `fields` has other routes. */
export function connectionManager(fields: object = {}): object {
  const answer = { status: 200, body: { inline_string: 'ok' } };
  const virtual_hosts = [
    { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: answer }] },
  ];
  return {
    name: 'http',
    typed_config: {
      '@type': `${TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: 'ingress',
      route_config: { virtual_hosts },
      http_filters: [{ name: 'router', typed_config: { '@type': `${TYPES}.filters.http.router.v3.Router` } }],
      ...fields,
    },
  };
}

/** Everything goes to one cluster. */
export function routesTo(cluster: string, virtualHost: object = {}): object {
  const routes = [{ match: { prefix: '/' }, route: { cluster } }];
  return { route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes, ...virtualHost }] } };
}

export function tcpProxyTo(cluster: string, fields: object = {}): object {
  const typed_config = {
    '@type': `${TYPES}.filters.network.tcp_proxy.v3.TcpProxy`,
    stat_prefix: 'raw',
    cluster,
    ...fields,
  };
  return { name: 'tcp', typed_config };
}

/** On a port of the system's choice, with `name` as its stat prefix. */
export function tlsListener(name: string, options: TlsListenerOptions): object {
  const { common = {}, context, chain, http, fields } = options;
  return {
    name,
    stat_prefix: name,
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    filter_chains: [{ transport_socket: tlsSocket(common, context), filters: [connectionManager(http)], ...chain }],
    ...fields,
  };
}

export function clusterAt(name: string, port: number): object {
  const endpoint = { endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } };
  return { name, load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] } };
}

/** With an admin interface on a port of the system's choice. */
export function bootstrapOf(listeners: readonly object[], resources: object = {}): string {
  return JSON.stringify({
    admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
    static_resources: { listeners, ...resources },
  });
}
