// Workers that each take a fault in the same instant: none has seen the others' gauge yet.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FilterCallbacks, FilterContext, HttpFilter } from '../../../../src/data-plane/index.ts';
import { FAULT_FILTER } from '../../../../src/extensions/filters.http/fault/filter.ts';
import type { FaultFilterSettings } from '../../../../src/extensions/filters.http/fault/settings.ts';
import type { RequestHead } from '../../../../src/wasm/http1.ts';

const WORKERS = 4;
const MOST = 2;
const ALWAYS = { key: '', default: { numerator: 100, denominator: 100 } };
const SETTINGS: FaultFilterSettings = {
  stats: { delays: 'delays', aborts: 'aborts', slowed: 'slowed', overflow: 'overflow', active: 'active' },
  activeCount: 'count',
  fault: {
    delay: null,
    abort: { share: ALWAYS, status: { kind: 'http', code: { key: '', default: 503 } } },
    rateLimit: null,
    upstreamCluster: '',
    headers: [],
    nodes: [],
    maxActive: { key: '', default: MOST },
    countsByClient: false,
    metadata: null,
  },
};

test('no more requests than max_active_faults have a fault, and each that ends makes room for another', () => {
  const counts: Record<string, number> = {};
  let shared = 0;
  const counter = (name: string) => ({
    add(n: number) {
      counts[name] = (counts[name] ?? 0) + n;
    },
  });
  const context = {
    counter,
    gauge: (name: string) => ({ ...counter(name), total: 0 }),
    sharedCount: (name: string) => {
      assert.equal(name, 'count');
      return {
        tryAdd: (limit: number) => {
          if (shared >= limit) return false;
          shared += 1;
          return true;
        },
        remove: () => {
          shared -= 1;
        },
      };
    },
    random: () => 0,
    compileHeaders: () => () => true,
    headerNames: { spellings: () => [] },
    runtime: {
      derived: () => ({ value: undefined }),
      integer: () => undefined,
      fraction: () => undefined,
      texts: new Map(),
    },
  } as unknown as FilterContext;
  const callbacks = { routeSettings: [], routeCluster: '', reply: () => {} } as unknown as FilterCallbacks;
  const head = { header: () => undefined } as unknown as RequestHead;
  const makers = Array.from({ length: WORKERS }, () => FAULT_FILTER.compile(SETTINGS, context));
  const begin = (): { filter: HttpFilter; isAborted: boolean }[] =>
    makers.map((make) => {
      const filter = make(callbacks);
      return { filter, isAborted: filter.decodeHeaders!(head, true) === 'stop' };
    });

  const first = begin();
  assert.deepEqual(
    first.map(({ isAborted }) => isAborted),
    [true, true, false, false],
  );
  const { active, overflow, aborts } = counts;
  assert.deepEqual([active, overflow, aborts], [MOST, WORKERS - MOST, MOST]);
  for (const { filter } of first) filter.onDestroy!();
  const { active: rest } = counts;
  assert.deepEqual([rest, shared], [0, 0]);
  assert.equal(begin().filter(({ isAborted }) => isAborted).length, MOST);
});
