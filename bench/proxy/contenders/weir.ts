// weir as it is shipped: dist/, statistics on, access log off.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { MAIN_FLAG } from '../../../src/process/young-generation.ts';
import {
  type CertificateFiles,
  type Contender,
  type ProxyTask,
  SAME_WORK,
  TRAITS,
  type UpstreamSide,
} from '../contender.ts';
import { PinnedProcess } from '../pinned-process.ts';

const NODE_FLAGS = [MAIN_FLAG, '--disable-sigusr1', '--disable-warning=ExperimentalWarning', '--enable-source-maps'];
const FILTERS = 'type.googleapis.com/envoy.extensions.filters';
const TRANSPORT_SOCKETS = 'type.googleapis.com/envoy.extensions.transport_sockets';

/** What is added to the configuration that all contenders have in common. */
export interface WeirExtras {
  /** Fields of the cluster. */
  readonly cluster?: (upstreamPort: number) => object;
  /** Fields of the action of the one route. */
  readonly route?: object;
  /** Before the router. */
  readonly httpFilters?: readonly object[];
  /** Beside the one that requests go to. */
  readonly furtherClusters?: readonly object[];
  /** Fields of the one filter chain. */
  readonly filterChain?: object;
  /** Of the admin interface; any when absent. */
  readonly adminPort?: number;
  /** A program that runs weir, with its arguments. */
  readonly runBy?: readonly string[];
}

/** @param checkout folder of the weir to run; its dist/ must be built. */
export function weir(name: string, checkout: string, extras: WeirExtras = {}): Contender {
  const main = path.join(checkout, 'dist/src/main.js');
  return {
    name,
    absence: `${main} is missing: run npm run build`,
    version: () => (existsSync(main) ? versionOf(checkout) : undefined),
    start: (task) => {
      const config = path.join(task.folder, 'bootstrap.json');
      writeFileSync(config, JSON.stringify(bootstrap(task, extras)));
      const command = [...(extras.runBy ?? []), process.execPath, ...NODE_FLAGS, main, '-c', config, '-l', 'error'];
      // Two builds of it may be compared.
      command.push('--disable-hot-restart');
      return PinnedProcess.start(task.cores, [...command, '--concurrency', String(task.workers)], task.port);
    },
  };
}

function versionOf(checkout: string): string {
  const read = (file: string): Record<string, string> => JSON.parse(readFileSync(path.join(checkout, file), 'utf8'));
  const { revision = '', treeStatus = '' } = read('build/version.json');
  const changed = treeStatus === 'Clean' ? '' : ', changed';
  return `${read('package.json').version} (${revision.slice(0, 7)}${changed})`;
}

function bootstrap(task: ProxyTask, extras: WeirExtras): object {
  const filters = [task.protocol === 'tcp' ? tcpProxy() : httpConnectionManager(extras)];
  const { clientsSpeakHttp2, upstream } = TRAITS[task.protocol];
  const secured = task.certificate === null ? {} : { transport_socket: tls(task.certificate, clientsSpeakHttp2) };
  return {
    admin: { address: socketAddress(extras.adminPort ?? 0) },
    static_resources: {
      listeners: [
        {
          name: 'bench',
          address: socketAddress(task.port),
          filter_chains: [{ filters, ...secured, ...extras.filterChain }],
        },
      ],
      clusters: [
        {
          ...cluster(task.upstreamPort),
          ...UPSTREAM_SIDES[upstream],
          ...extras.cluster?.(task.upstreamPort),
        },
        ...(extras.furtherClusters ?? []),
      ],
    },
  };
}

export function socketAddress(port: number, address = '127.0.0.1'): object {
  return { socket_address: { address, port_value: port } };
}

function cluster(port: number): object {
  const lbEndpoints = [{ endpoint: { address: socketAddress(port) } }];
  return {
    name: 'upstream',
    connect_timeout: '1s',
    load_assignment: { cluster_name: 'upstream', endpoints: [{ lb_endpoints: lbEndpoints }] },
  };
}

const HTTP2_UPSTREAM = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

/** It does not go beyond TLS 1.2 towards upstreams by itself. */
const TLS_UPSTREAM = {
  transport_socket: {
    name: 'tls',
    typed_config: {
      '@type': `${TRANSPORT_SOCKETS}.tls.v3.UpstreamTlsContext`,
      common_tls_context: { tls_params: { tls_maximum_protocol_version: 'TLSv1_3' } },
    },
  },
};

const UPSTREAM_SIDES: Readonly<Record<UpstreamSide, object>> = { http: {}, http2: HTTP2_UPSTREAM, https: TLS_UPSTREAM };

function tls({ certificate, key }: CertificateFiles, isHttp2: boolean): object {
  return {
    name: 'tls',
    typed_config: {
      '@type': `${TRANSPORT_SOCKETS}.tls.v3.DownstreamTlsContext`,
      common_tls_context: {
        alpn_protocols: isHttp2 ? ['h2', 'http/1.1'] : ['http/1.1'],
        tls_certificates: [{ certificate_chain: { filename: certificate }, private_key: { filename: key } }],
      },
    },
  };
}

function httpConnectionManager({ route, httpFilters = [] }: WeirExtras): object {
  return {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type': `${FILTERS}.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: 'bench',
      use_remote_address: true,
      via: SAME_WORK.via,
      route_config: {
        name: 'bench',
        virtual_hosts: [
          {
            name: 'bench',
            domains: ['*'],
            routes: [{ match: { prefix: '/' }, route: { cluster: 'upstream', ...route } }],
          },
        ],
      },
      http_filters: [
        ...httpFilters,
        { name: 'envoy.filters.http.router', typed_config: { '@type': `${FILTERS}.http.router.v3.Router` } },
      ],
    },
  };
}

function tcpProxy(): object {
  return {
    name: 'envoy.filters.network.tcp_proxy',
    typed_config: {
      '@type': `${FILTERS}.network.tcp_proxy.v3.TcpProxy`,
      stat_prefix: 'bench',
      cluster: 'upstream',
    },
  };
}
