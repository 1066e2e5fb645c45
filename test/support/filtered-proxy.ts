// A proxy whose requests meet the filters of a test, and the client that sends them.

import type { TestContext } from 'node:test';
import type {
  BodyUse,
  CreateFilter,
  HttpFilter,
  HttpFilterKind,
  HttpFilterRegistry,
} from '../../src/data-plane/index.ts';
import type { HttpConnectionManagerSettings, ListenerSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, httpManager, loopback, routeTo } from './data-plane.ts';
import { filterChain } from './listeners.ts';
import { WireClient } from './wire.ts';

/** Makes the filter of one request; it reads bodies. */
export type CreateScripted = CreateFilter;

/** The same with what it does to bodies, in both directions. */
export interface ScriptedFilter {
  readonly create: CreateFilter;
  readonly use: BodyUse;
}

export interface FilteredProxy {
  readonly client: WireClient;
  readonly proxy: DataPlaneFixture;
  readonly port: number;
}

/** A filter that edits bodies. */
export function editing(filter: HttpFilter | CreateFilter): ScriptedFilter {
  return { use: 'edits', create: typeof filter === 'function' ? filter : () => filter };
}

/** A proxy whose requests meet these filters in this order; trailers are enabled. It ends with the test. */
export async function proxyWith(
  t: TestContext,
  upstreamPort: number,
  filters: readonly (CreateScripted | ScriptedFilter)[],
  limitBytes = 1024 * 1024,
  manager: Partial<HttpConnectionManagerSettings> = {},
): Promise<FilteredProxy> {
  const httpFilters: HttpFilterRegistry = Object.fromEntries(
    filters.map((filter, index) => [`test.${index}`, kindOf(filter)]),
  );
  const proxy = new DataPlaneFixture({ httpFilters });
  proxy.cluster('web', [loopback(upstreamPort)], { enableTrailers: true });
  const settings = filters.map((_, index) => ({ name: `test.${index}`, settings: null }));
  const routes = [directRoute('/direct', 200, 'direct'), routeTo('web')];
  const fields: Partial<ListenerSettings> = {
    addresses: [loopback(0)],
    bufferLimitBytes: limitBytes,
    filterChains: [filterChain(httpManager(routes, { httpFilters: settings, enableTrailers: true, ...manager }))],
  };
  const [port] = await proxy.listenWith(fields);
  const client = new WireClient(port!);
  t.after(async () => {
    client.close();
    await proxy.close();
  });
  return { client, proxy, port: port! };
}

function kindOf(filter: CreateScripted | ScriptedFilter): HttpFilterKind {
  const { create, use } = typeof filter === 'function' ? { create: filter, use: 'reads' as const } : filter;
  return { requestBody: use, encodes: true, responseBody: use, compile: () => create };
}
