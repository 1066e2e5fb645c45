// What main loads of the control plane when a configuration has use for it, one name for each concept. All of it is one module: each that is
// loaded for itself divides what it shares with the start into more files, which a start without any of it has to open.

/** The servers of a cluster of Redis. */
export { RedisClusterDiscovery } from './cluster-manager/discovery/redis-cluster.ts';
/** Clusters and listeners that come from outside. */
export { DynamicResources } from './discovery/dynamic-resources.ts';
/** Hosts that are checked for a server. */
export { healthDelegation } from './health-delegation/health-delegation.ts';
/** Load that a server is told of. */
export { loadReporting } from './load-reporting/load-reporting.ts';
/** Servers that are asked for resources. */
export { ManagementServers } from './subscription/management-servers.ts';
