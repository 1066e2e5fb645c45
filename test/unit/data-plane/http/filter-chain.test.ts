import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HttpFilter } from '../../../../src/data-plane/http/filter.ts';
import { FilterChain } from '../../../../src/data-plane/http/filter-chain.ts';
import type { FilteredStream } from '../../../../src/data-plane/http/filtered-stream.ts';
import type { ClusterMap } from '../../../../src/data-plane/upstream/cluster-map.ts';
import type { WorkerContext } from '../../../../src/data-plane/worker-context.ts';

/** Whether the responses of requests that meet these filters are shown to anybody. */
function shows(filters: readonly HttpFilter[]): boolean {
  const kind = (filter: HttpFilter) =>
    ({ requestBody: 'none', encodes: true, responseBody: 'reads', compile: () => () => filter }) as const;
  const names = filters.map((_, index) => String(index));
  const httpFilters = Object.fromEntries(names.map((name, index) => [name, kind(filters[index]!)]));
  // Filters are made, and nothing else happens.
  const context = { httpFilters, clock: { monotonicMs: () => 0 } } as unknown as WorkerContext;
  const settings = names.map((name) => ({ name, settings: null }));
  const chain = FilterChain.compile(context, {} as ClusterMap, settings, 'http.x.')!;
  return chain.open(context, { bufferLimitBytes: 1 } as FilteredStream).encodes;
}

test('responses go by filters of which none looks at them, though their kinds could', () => {
  assert.equal(shows([{}, { decodeHeaders: () => 'continue' }]), false);
  const looking: HttpFilter[] = [
    { encodeHeaders: () => 'continue' },
    { encodeData: () => 'continue' },
    { encodeTrailers: () => 'continue' },
    { localReplyBody: () => {} },
  ];
  for (const filter of looking) assert.equal(shows([{}, filter]), true, Object.keys(filter).join());
});
