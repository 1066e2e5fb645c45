// Loads bootstraps that tests write as plain objects or YAML text.

import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import {
  type BootstrapConfig,
  type LoadBootstrapInput,
  type LoadBootstrapResult,
  loadBootstrap,
} from '../../src/config/index.ts';
import { EXTENSIONS } from '../../src/extensions/control-registry.ts';
import type { ClusterSettings } from '../../src/snapshot/index.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

const NO_OPTIONS: LoadBootstrapInput = {
  configPath: '',
  configYaml: '',
  allowUnknownStaticFields: false,
  serviceCluster: '',
  serviceNode: '',
  serviceZone: '',
  extensions: EXTENSIONS,
};

/** Only where a test asks for it: a file that gets each configuration that is taken, as a line of JSON. */
const collected = process.env.WEIR_TEST_CONFIGURATIONS;
/** Only where a test asks for it: what is taken has to be in the schema for editors, too. */
const schemaCheck = process.env.WEIR_TEST_SCHEMA === undefined ? undefined : await import('./schema-check.ts');

/** A build that lacks one of the HTTP filters. @param type full name of its message. */
export function withoutFilter(type: string): Partial<LoadBootstrapInput> {
  const { [type]: _, ...httpFilters } = EXTENSIONS.httpFilters;
  return { extensions: { ...EXTENSIONS, httpFilters } };
}

export function load(bootstrap: JsonObject | string, options: Partial<LoadBootstrapInput> = {}): LoadBootstrapResult {
  const configYaml = typeof bootstrap === 'string' ? bootstrap : JSON.stringify(bootstrap);
  const result = loadBootstrap({ ...NO_OPTIONS, configYaml, ...options });
  const isSchematic = result.bootstrap !== undefined && !options.configPath && !options.allowUnknownStaticFields;
  if (isSchematic && collected !== undefined) appendFileSync(collected, `${JSON.stringify(configYaml)}\n`);
  if (isSchematic) schemaCheck?.assertInSchema(configYaml);
  return result;
}

export function loadFile(configPath: string, options: Partial<LoadBootstrapInput> = {}): LoadBootstrapResult {
  return loadBootstrap({ ...NO_OPTIONS, configPath, ...options });
}

/** Faults as `path: message`, without their place. */
export function faultTexts(result: LoadBootstrapResult, severity: 'error' | 'warning' = 'error'): string[] {
  return result.faults.filter((fault) => fault.severity === severity).map(({ path, message }) => `${path}: ${message}`);
}

/** The bootstrap of a configuration without errors. */
export function mustLoad(bootstrap: JsonObject | string, options: Partial<LoadBootstrapInput> = {}): BootstrapConfig {
  const result = load(bootstrap, options);
  assert.deepEqual(faultTexts(result), []);
  return result.bootstrap!;
}

export function socketAddress(address: string, port: number): JsonObject {
  return { socket_address: { address, port_value: port } };
}

/** A STATIC cluster with one member; `fields` are added or replace. */
export function clusterNamed(name: string, fields: JsonObject = {}): JsonObject {
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', 8080) } };
  return { name, load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] }, ...fields };
}

/** Settings of the one cluster of a configuration without errors. */
export function clusterSettings(cluster: JsonObject): ClusterSettings {
  return mustLoad(withClusters(cluster)).clusters[0]!;
}

/** Errors of a configuration of one cluster. */
export function clusterErrors(cluster: JsonObject): string[] {
  return faultTexts(load(withClusters(cluster)));
}

/** A STATIC cluster with these localities; `fields` are those of the assignment. */
export function assigned(endpoints: readonly Json[], fields: JsonObject = {}): JsonObject {
  return { name: 'web', load_assignment: { cluster_name: 'web', endpoints, ...fields } };
}

/** An endpoint at 10.0.0.1. */
export function member(port: number, fields: JsonObject = {}): JsonObject {
  return { endpoint: { address: socketAddress('10.0.0.1', port) }, ...fields };
}

const TYPES = 'type.googleapis.com/envoy.extensions.filters';
export const ROUTER: JsonObject = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': `${TYPES}.http.router.v3.Router` },
};

export function httpFilter(fields: JsonObject): JsonObject {
  const type = `${TYPES}.network.http_connection_manager.v3.HttpConnectionManager`;
  const settings = { '@type': type, stat_prefix: 'ingress', route_config: {}, http_filters: [ROUTER] };
  return { name: 'envoy.filters.network.http_connection_manager', typed_config: { ...settings, ...fields } };
}

/** An HTTP filter that POST /tap has record under this name. */
export function tapFilter(config_id: string): JsonObject {
  const common_config = { admin_config: { config_id } };
  return { name: 'filters.http.tap', typed_config: { '@type': `${TYPES}.http.tap.v3.Tap`, common_config } };
}

export function tcpFilter(fields: JsonObject): JsonObject {
  const type = `${TYPES}.network.tcp_proxy.v3.TcpProxy`;
  const settings = { '@type': type, stat_prefix: 'tcp', cluster: 'web' };
  return { name: 'envoy.filters.network.tcp_proxy', typed_config: { ...settings, ...fields } };
}

export function listenerWith(filters: readonly Json[], fields: JsonObject = {}): JsonObject {
  return { name: 'main', address: socketAddress('127.0.0.1', 10000), filter_chains: [{ filters }], ...fields };
}

/** A bootstrap of the listeners given and one cluster called `web`. */
export function withListeners(...listeners: Json[]): JsonObject {
  return { static_resources: { listeners, clusters: [clusterNamed('web')] } };
}

/** Faults, as `faultTexts` has them, of a bootstrap whose one listener has a connection manager with these fields. */
export function managerFaults(fields: JsonObject, severity: 'error' | 'warning' = 'error'): string[] {
  return faultTexts(load(withListeners(listenerWith([httpFilter(fields)]))), severity);
}

/** A bootstrap whose one listener serves the route configuration. */
export function withRoutes(routeConfig: JsonObject): JsonObject {
  return withListeners(listenerWith([httpFilter({ route_config: routeConfig })]));
}

export function withClusters(...clusters: Json[]): JsonObject {
  return { static_resources: { clusters } };
}
