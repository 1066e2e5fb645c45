// Has requests to forward proxies go to hosts of other names than those that they bring, where their route or filter state says
// so. Worker thread; step 3 of the request flow. Names are looked up behind it, when the router asks the cluster for the host
// (data-plane/upstream/forward-destinations.ts).

import {
  DNS_FAILURE,
  type FilterCallbacks,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  stateNumber,
  UPSTREAM_HOST,
  UPSTREAM_PORT,
} from '../../../data-plane/index.ts';
import { Method, type RequestHead } from '../../../wasm/http1.ts';
import type { ForwardProxySettings, HostRewrite } from './settings.ts';

/** What can stand in a line: what is no host is found out when it is looked up. */
const AUTHORITY = /^[\w.:[\]%~!$&'()*+,;=-]{1,255}$/;

class DynamicForwardProxyFilter implements HttpFilter {
  readonly #readsState: boolean;
  readonly #rewrite: HostRewrite | undefined;
  readonly #callbacks: FilterCallbacks;

  constructor(readsState: boolean, rewrite: HostRewrite | undefined, callbacks: FilterCallbacks) {
    this.#readsState = readsState;
    this.#rewrite = rewrite;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    if (this.#readsState) this.#nameHost();
    return this.#rewrite === undefined ? 'continue' : this.#rewriteHost(this.#rewrite, head);
  }

  #nameHost(): void {
    const callbacks = this.#callbacks;
    const host = callbacks.state(UPSTREAM_HOST);
    if (host !== undefined) callbacks.nameHost(host, stateNumber(callbacks.state(UPSTREAM_PORT), MAX_PORT) ?? null);
  }

  #rewriteHost(rewrite: HostRewrite, head: RequestHead): FilterStatus {
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

const MAX_PORT = 65_535;

/** For requests whose routes say nothing. */
const NOTHING: HttpFilter = {};

export const DYNAMIC_FORWARD_PROXY_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compile: (settings) => {
    const { readsState } = settings as ForwardProxySettings;
    return (callbacks) => {
      const [nearest] = callbacks.routeSettings as readonly HostRewrite[];
      const isIdle = nearest === undefined && !readsState;
      return isIdle ? NOTHING : new DynamicForwardProxyFilter(readsState, nearest, callbacks);
    };
  },
};
