// What main loads of the control plane when a configuration has use for it: what speaks with servers of discovery, of load and of health, and
// with those of Redis. All of it is one module: each that is loaded for itself divides what it shares with the start into more files, which a
// start without any of it has to open.

export { nodeMessage } from '../config/exchange.ts';
export { compileHttp1, Http1Codec } from '../wasm/http1.ts';
export { RedisClusterDiscovery } from './cluster-manager/discovery/redis-cluster.ts';
export { DynamicResources } from './discovery/dynamic-resources.ts';
export { healthDelegation } from './health-delegation/health-delegation.ts';
export { loadReporting } from './load-reporting/load-reporting.ts';
export { ControlPlaneStats } from './subscription/control-plane-stats.ts';
export { DiscoveryMux } from './subscription/management-server/discovery-mux.ts';
export { RestPoll } from './subscription/rest-server/rest-poll.ts';
