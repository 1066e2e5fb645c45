// A route configuration, made ready for matching once per snapshot. Step 3 of the request flow.

import type { RuntimeValues } from '../../base/runtime.ts';
import type { RouteTableSnapshot } from '../../snapshot/index.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { firstValueReader, type ReadHeader } from './header-matcher.ts';
import type { Route } from './route.ts';
import type { RouteRequest } from './route-request.ts';
import { type RouteTools, VirtualHost } from './virtual-host.ts';
import { VirtualHostIndex } from './virtual-host-index.ts';

const PORT = /:\d+$/;

export class RouteTable {
  readonly name: string;
  /** Request headers, in lower case, that only internal requests may bring. */
  readonly internalOnlyHeaders: readonly string[];
  readonly #hosts = new VirtualHostIndex<VirtualHost>();
  readonly #ignoresPort: boolean;
  readonly #discoversHosts: boolean;
  readonly #ignoresPathParameters: boolean;
  /** Null where virtual hosts are chosen by the authority. */
  readonly #readHost: ReadHeader | null;

  /** @param names of the headers that routes make the proxy write. */
  constructor(snapshot: RouteTableSnapshot, names: ProxyHeaders, runtime: RuntimeValues, tools: RouteTools = {}) {
    this.name = snapshot.name;
    this.internalOnlyHeaders = snapshot.internalOnlyHeaders;
    this.#ignoresPort = snapshot.ignoresPort;
    this.#discoversHosts = snapshot.hostDiscovery !== undefined;
    this.#ignoresPathParameters = snapshot.ignoresPathParameters ?? false;
    this.#readHost = snapshot.hostHeader === undefined ? null : firstValueReader(snapshot.hostHeader);
    for (const virtualHost of snapshot.virtualHosts) {
      const owner = new VirtualHost(virtualHost, names, runtime, tools);
      for (const domain of virtualHost.domains) this.#hosts.add(domain.toLowerCase(), owner);
    }
  }

  /** The first route that matches within the virtual host of the request's authority, or undefined: answer 404. */
  find(request: RouteRequest): Route | undefined {
    if (this.#ignoresPathParameters) request.matchedPath = withoutParameters(request.path);
    return (this.#hosts.only ?? this.#findHost(request))?.find(request);
  }

  /** By which the virtual host can be asked for that a request lacks; undefined where it has one, or there are no others to be had. */
  missingHost(request: RouteRequest): string | undefined {
    if (!this.#discoversHosts || this.#hosts.only !== undefined) return undefined;
    const host = this.#hostOf(request);
    return host === undefined || host === '' || this.#hosts.find(host) !== undefined ? undefined : host;
  }

  #findHost(request: RouteRequest): VirtualHost | undefined {
    const host = this.#hostOf(request);
    return host === undefined ? undefined : this.#hosts.find(host);
  }

  /** In lower case. */
  #hostOf(request: RouteRequest): string | undefined {
    const host = this.#readHost === null ? request.authority : this.#readHost(request);
    if (host === undefined) return undefined;
    const authority = host.toLowerCase();
    return this.#ignoresPort ? authority.replace(PORT, '') : authority;
  }
}

function withoutParameters(path: string): string {
  const semicolon = path.indexOf(';');
  return semicolon === -1 ? path : path.slice(0, semicolon);
}
