// Runtime values as text: the keys that this build reads, and how a value becomes a number.

/** Most connections from clients over all listeners. */
export const GLOBAL_CONNECTION_LIMIT = 'overload.global_downstream_max_connections';
/** Around the name of a listener, the key of its own limit. */
export const LISTENER_LIMITS = 'proxy.resource_limits.listener.';
export const CONNECTION_LIMIT = '.connection_limit';

/** Bounds of the waits between health checks, in milliseconds, and the percent of them that verify the service. */
export const MIN_CHECK_INTERVAL = 'health_check.min_interval';
export const MAX_CHECK_INTERVAL = 'health_check.max_interval';
export const VERIFY_CLUSTER = 'health_check.verify_cluster';

/** Lookups by a service of another operating system, which takes neither servers nor a transport. */
export const APPLE_DNS_LOOKUPS = 'proxy.restart_features.use_apple_api_for_dns_lookups';

/** Key of the most connections of one listener. */
export function listenerConnectionLimit(name: string): string {
  return `${LISTENER_LIMITS}${name}${CONNECTION_LIMIT}`;
}

/** The two spellings of the proxy's own keys are one. */
export function runtimeKey(key: string): string {
  return key.startsWith('envoy.') ? `proxy.${key.slice('envoy.'.length)}` : key;
}

/** A value read as a whole number of 0 or more, fractions cut off; undefined when it is none. */
export function runtimeInteger(value: string): number | undefined {
  return /^\d+(\.\d*)?(e\+?\d+)?$/i.test(value) ? Math.floor(Number(value)) : undefined;
}

/** A value read as a flag; undefined when it is none. */
export function runtimeFlag(value: string): boolean | undefined {
  const word = value.toLowerCase();
  return word === 'true' || word === 'false' ? word === 'true' : undefined;
}
