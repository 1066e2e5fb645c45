// A route configuration, made ready for matching once per snapshot. Step 3 of the request flow.

import type { RuntimeValues } from '../../base/runtime.ts';
import type { RouteTableSnapshot } from '../../snapshot/index.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import type { Route } from './route.ts';
import type { RouteRequest } from './route-request.ts';
import { VirtualHost } from './virtual-host.ts';
import { VirtualHostIndex } from './virtual-host-index.ts';

const PORT = /:\d+$/;

export class RouteTable {
  readonly name: string;
  /** Request headers, in lower case, that only internal requests may bring. */
  readonly internalOnlyHeaders: readonly string[];
  readonly #hosts = new VirtualHostIndex<VirtualHost>();
  readonly #ignoresPort: boolean;

  /** @param names of the headers that routes make the proxy write. */
  constructor(snapshot: RouteTableSnapshot, names: ProxyHeaders, runtime: RuntimeValues) {
    this.name = snapshot.name;
    this.internalOnlyHeaders = snapshot.internalOnlyHeaders;
    this.#ignoresPort = snapshot.ignoresPort;
    for (const virtualHost of snapshot.virtualHosts) {
      const owner = new VirtualHost(virtualHost, names, runtime);
      for (const domain of virtualHost.domains) this.#hosts.add(domain.toLowerCase(), owner);
    }
  }

  /** The first route that matches within the virtual host of the request's authority, or undefined: answer 404. */
  find(request: RouteRequest): Route | undefined {
    return (this.#hosts.only ?? this.#findHost(request))?.find(request);
  }

  #findHost(request: RouteRequest): VirtualHost | undefined {
    const authority = request.authority.toLowerCase();
    return this.#hosts.find(this.#ignoresPort ? authority.replace(PORT, '') : authority);
  }
}
