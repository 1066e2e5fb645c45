// Has requests to forward proxies go to hosts of other names than those that they bring, where their route says so. Worker
// thread; step 3 of the request flow. Names are looked up behind it, when the router asks the cluster for the host
// (data-plane/upstream/forward-destinations.ts).

import {
  DNS_FAILURE,
  type FilterCallbacks,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
} from '../../../data-plane/index.ts';
import { Method, type RequestHead } from '../../../wasm/http1.ts';
import type { HostRewrite } from './settings.ts';

/** What can stand in a line: what is no host is found out when it is looked up. */
const AUTHORITY = /^[\w.:[\]%~!$&'()*+,;=-]{1,255}$/;

class DynamicForwardProxyFilter implements HttpFilter {
  readonly #rewrite: HostRewrite;
  readonly #callbacks: FilterCallbacks;

  constructor(rewrite: HostRewrite, callbacks: FilterCallbacks) {
    this.#rewrite = rewrite;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const rewrite = this.#rewrite;
    const host = 'literal' in rewrite ? rewrite.literal : head.headerByName(rewrite.header);
    // A CONNECT names the end of its tunnel, and nothing else.
    if (host === undefined || host === '' || head.methodId === Method.CONNECT) return 'continue';
    if (!AUTHORITY.test(host)) {
      this.#callbacks.reply(DNS_FAILURE);
      return 'stop';
    }
    head.replaceHost(host);
    this.#callbacks.settleEditedHead();
    return 'continue';
  }
}

/** For requests whose routes say nothing. */
const NOTHING: HttpFilter = {};

export const DYNAMIC_FORWARD_PROXY_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compile: () => (callbacks) => {
    const [nearest] = callbacks.routeSettings as readonly HostRewrite[];
    return nearest === undefined ? NOTHING : new DynamicForwardProxyFilter(nearest, callbacks);
  },
};
