// A proxy whose one chain has network filters, as configurations write them.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { faultTexts, type JsonObject, listenerWith, load, socketAddress, withListeners } from './bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from './embedded.ts';
import { WireClient, WireUpstream } from './wire.ts';

export const V3 = 'type.googleapis.com/envoy.extensions.filters.network';
export const V2 = 'type.googleapis.com/envoy.config.filter.network';

export function filter(type: string, fields: JsonObject = {}): JsonObject {
  return { name: 'the filter', typed_config: { '@type': type, ...fields } };
}

interface Options {
  readonly concurrency?: number;
  readonly listener?: JsonObject;
  /** Fields of the filter chain. */
  readonly chain?: JsonObject;
  /** Ports by cluster. */
  readonly clusters?: Readonly<Record<string, number>>;
  readonly runtime?: JsonObject;
  readonly node?: JsonObject;
  /** Of clusters, by name. */
  readonly clusterFields?: Readonly<Record<string, JsonObject>>;
}

export async function running(t: TestContext, filters: readonly JsonObject[], options: Options = {}) {
  const { concurrency = 1, listener = {}, chain = {}, clusters = {}, runtime, node, clusterFields = {} } = options;
  const address = socketAddress('127.0.0.1', 0);
  const bootstrap = bootstrapOf(
    [
      listenerWith(filters, {
        address,
        stat_prefix: 'main',
        filter_chains: [{ filters: [...filters], ...chain }],
        ...listener,
      }),
    ],
    Object.entries(clusters).map(([name, port]) => clusterAt(name, port, clusterFields[name])),
    {
      ...(runtime !== undefined && { layered_runtime: { layers: [{ name: 'l', static_layer: runtime }] } }),
      ...(node !== undefined && { node }),
    },
  );
  const proxy = await createProxy(bootstrap, { concurrency });
  t.after(async () => await proxy.close());
  const client = (from = '127.0.0.1'): WireClient =>
    new WireClient(proxy.listeners.get('main')!.port, '127.0.0.1', from);
  const stat = (name: string): number => proxy.stats.value(name) ?? Number.NaN;
  return { proxy, client, stat };
}

/** An upstream that says its name, and then sends back what it gets. */
export async function named(t: TestContext, name: string): Promise<WireUpstream> {
  const upstream = await WireUpstream.start((socket) => {
    socket.write(`${name}:`);
    socket.on('data', (chunk) => socket.write(chunk));
    socket.on('end', () => socket.end());
  });
  t.after(() => upstream.close());
  return upstream;
}

export function logTo(t: TestContext, format: string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-network-filters-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'log');
  const type = 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog';
  const log_format = { text_format_source: { inline_string: `${format}\n` } };
  return {
    access_log: [{ name: 'file', typed_config: { '@type': type, path: file, log_format } }],
    lines: () => readFileSync(file, 'utf8').split('\n').slice(0, -1),
  };
}

export function errorsOf(...filters: JsonObject[]): string[] {
  return faultTexts(load(withListeners(listenerWith(filters))));
}
