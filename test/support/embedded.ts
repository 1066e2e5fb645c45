// The proxy as a library, for tests: what `npm test` has built, or the sources where a test runs by itself; and bootstraps of the
// simplest kind.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Library from '../../src/library/index.ts';
import { type Json, type JsonObject, listenerWith, ROUTER, socketAddress } from './bootstrap.ts';

const IS_BUILT = process.env.WEIR_TEST_MAIN !== undefined;
const ENTRY = path.join(import.meta.dirname, '../..', IS_BUILT ? 'dist/src/library/index.js' : 'src/library/index.ts');

export const LIBRARY_URL: string = pathToFileURL(ENTRY).href;

export const { createProxy, ConfigError, WeirError } = (await import(LIBRARY_URL)) as typeof Library;

const TYPES = 'type.googleapis.com/envoy.extensions.filters';

/** An upstream that answers everything with its name. */
export class NamedUpstream implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  static async start(name: string): Promise<NamedUpstream> {
    const server = createServer((_request, response) => response.end(name));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return new NamedUpstream(server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** An HTTP listener at a port of the system's choice, all of whose requests go to one cluster. */
export function httpListener(name: string, cluster: string, fields: JsonObject = {}): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster } }];
  const manager = {
    '@type': `${TYPES}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: name,
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    http_filters: [ROUTER],
  };
  const filter = { name: 'envoy.filters.network.http_connection_manager', typed_config: manager };
  return listenerWith([filter], { name, address: socketAddress('127.0.0.1', 0), ...fields });
}

export function clusterAt(name: string, port: number, fields: JsonObject = {}): JsonObject {
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', port) } };
  return { name, load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] }, ...fields };
}

/** A bootstrap as users of the library have it. */
export function bootstrapOf(
  listeners: readonly Json[],
  clusters: readonly Json[],
  fields: JsonObject = {},
): Library.Bootstrap {
  return { static_resources: { listeners, clusters }, ...fields } as Library.Bootstrap;
}

/** The text of a GET over a connection of its own. */
export async function textOf(url: string): Promise<string> {
  const response = await fetch(url, { headers: { connection: 'close' } });
  return await response.text();
}
