// A proxy whose requests are traced, with the upstream `web` and the collector's cluster `spans`.

import type { TestContext } from 'node:test';
import type { JsonObject } from './bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from './embedded.ts';
import { filteredListener, routeTo } from './embedded-filters.ts';
import { untilEqual } from './eventually.ts';
import { HTTP2 } from './guarded-proxy.ts';
import { WireClient, WireUpstream } from './wire.ts';

const TRACE = 'type.googleapis.com/envoy.config.trace.v3';

export const ZIPKIN: JsonObject = {
  name: 'envoy.tracers.zipkin',
  typed_config: {
    '@type': `${TRACE}.ZipkinConfig`,
    collector_cluster: 'spans',
    collector_endpoint: '/api/v2/spans',
    collector_endpoint_version: 'HTTP_JSON',
  },
};

export function zipkin(fields: JsonObject): JsonObject {
  return { ...ZIPKIN, typed_config: { ...(ZIPKIN.typed_config as JsonObject), ...fields } };
}

export const OTLP_GRPC: JsonObject = { grpc_service: { envoy_grpc: { cluster_name: 'spans' }, timeout: '5s' } };
export const OTLP_HTTP: JsonObject = {
  http_service: { http_uri: { uri: 'http://otel.test/v1/traces', cluster: 'spans', timeout: '5s' } },
};

export function openTelemetry(fields: JsonObject): JsonObject {
  return {
    name: 'envoy.tracers.opentelemetry',
    typed_config: { '@type': `${TRACE}.OpenTelemetryConfig`, service_name: 'edge', ...fields },
  };
}

export function datadog(fields: JsonObject = {}): JsonObject {
  const settings = { collector_cluster: 'spans', service_name: 'edge', ...fields };
  return { name: 'envoy.tracers.datadog', typed_config: { '@type': `${TRACE}.DatadogConfig`, ...settings } };
}

export interface TracedOptions {
  readonly tracing?: JsonObject;
  readonly routes?: readonly JsonObject[];
  readonly manager?: JsonObject;
  readonly listener?: JsonObject;
  readonly bootstrap?: JsonObject;
  readonly runtime?: JsonObject;
  /** Of HTTP/2, as gRPC needs it. */
  readonly isGrpc?: boolean;
  readonly upstream?: WireUpstream & { heads: string[] };
}

export interface TracedProxy {
  readonly proxy: Awaited<ReturnType<typeof createProxy>>;
  readonly client: WireClient;
  readonly upstream: WireUpstream & { heads: string[] };
  /** Sends a request and reads its response. */
  get(path?: string, lines?: readonly string[]): Promise<{ head: string; body: string; status: number }>;
  /** Those of a scope that are not 0, without it. */
  counts(scope: string): Promise<Record<string, number>>;
}

export const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** Spans are sent one by one unless the runtime says otherwise. It ends with the test. */
export async function tracedProxy(
  t: TestContext,
  provider: JsonObject | null,
  collectorPort: number,
  options: TracedOptions = {},
): Promise<TracedProxy> {
  const { tracing = {}, routes = [routeTo('/')], manager = {}, listener = {}, bootstrap = {}, runtime = {} } = options;
  const upstream = options.upstream ?? (await WireUpstream.answering(OK));
  const made = filteredListener([], routes, {
    manager: {
      use_remote_address: true,
      tracing: { ...(provider === null ? {} : { provider }), ...tracing },
      ...manager,
    },
    listener,
  });
  const clusters = [
    clusterAt('web', upstream.port),
    clusterAt('spans', collectorPort, options.isGrpc === true ? HTTP2 : {}),
  ];
  const flushes = Object.fromEntries(
    ['zipkin', 'opentelemetry', 'datadog'].map((kind) => [`tracing.${kind}.min_flush_spans`, 1]),
  );
  const proxy = await createProxy(
    bootstrapOf([made], clusters, {
      node: { id: 'n1', cluster: 'shop', locality: { zone: 'z1' } },
      stats_flush_on_admin: true,
      layered_runtime: { layers: [{ name: 'static', static_layer: { ...flushes, ...runtime } }] },
      ...bootstrap,
    }),
  );
  const client = new WireClient(proxy.listeners.get('main')!.port);
  t.after(async () => {
    client.close();
    await proxy.close();
    await upstream.close();
  });
  return {
    proxy,
    client,
    upstream,
    async get(path = '/', lines = []) {
      client.write(`${[`GET ${path} HTTP/1.1`, 'host: shop.test', ...lines].join('\r\n')}\r\n\r\n`);
      return await client.response();
    },
    async counts(scope) {
      const found = Object.entries(await proxy.stats.counters(scope)).filter(([, n]) => n > 0);
      return Object.fromEntries(found.map(([name, n]) => [name.slice(scope.length), n]));
    },
  };
}

/** Waits until a scope has these counts and no others. */
export async function untilCounts(
  { counts }: Pick<TracedProxy, 'counts'>,
  scope: string,
  wanted: Readonly<Record<string, number>>,
): Promise<void> {
  const text = (found: Readonly<Record<string, number>>): string =>
    Object.entries(found)
      .map(([name, n]) => `${name}=${n}`)
      .sort()
      .join(' ');
  await untilEqual(text(wanted), async () => text(await counts(scope)), `what ${scope} counts`);
}

/** The value of a field of a head; undefined without one. */
export function field(head: string | undefined, name: string): string | undefined {
  const line = head?.split('\r\n').find((each) => each.toLowerCase().startsWith(`${name}:`));
  return line?.slice(name.length + 1).trim();
}
