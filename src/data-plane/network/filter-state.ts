// What the filters of a connection say to those behind them, by names that configurations use as well
// (CONNECTION_STATE_KEYS and REQUEST_STATE_KEYS of config).

/** The cluster that the TCP proxy connects to, in place of the one that it names itself. */
export const TCP_PROXY_CLUSTER = 'envoy.tcp_proxy.cluster';
/** How long the TCP proxy waits in silence, in milliseconds, in place of what it says itself; 0 for any time. */
export const TCP_PROXY_IDLE_TIMEOUT_MS = 'envoy.tcp_proxy.per_connection_idle_timeout_ms';
/** The server name that the connection to an upstream announces. */
export const UPSTREAM_SERVER_NAME = 'envoy.network.upstream_server_name';
/** The host that a cluster of forward proxies connects to, in place of the server name of the client's TLS. */
export const UPSTREAM_HOST = 'envoy.upstream.dynamic_host';
/** Its port, in place of the cluster's own. */
export const UPSTREAM_PORT = 'envoy.upstream.dynamic_port';

/** What filters have said of a connection, or of a request. */
export class FilterState {
  readonly #values = new Map<string, string>();
  readonly #fixed = new Set<string>();

  get(key: string): string | undefined {
    return this.#values.get(key);
  }

  /** Nothing, where it has been said once for all. */
  set(key: string, value: string, isReadOnly: boolean): void {
    if (this.#fixed.has(key)) return;
    this.#values.set(key, value);
    if (isReadOnly) this.#fixed.add(key);
  }

  isFixed(key: string): boolean {
    return this.#fixed.has(key);
  }
}

/** The number that a text is, 0 to `max`; undefined for anything else. */
export function stateNumber(text: string | undefined, max: number): number | undefined {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  const value = Number(text);
  return value <= max ? value : undefined;
}
