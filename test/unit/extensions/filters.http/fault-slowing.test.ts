// A response that is slowed down, by a clock that is turned by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FilterCallbacks, FilterContext, HttpFilter } from '../../../../src/data-plane/index.ts';
import { FAULT_FILTER } from '../../../../src/extensions/filters.http/fault/filter.ts';
import { PIECE_MS } from '../../../../src/extensions/filters.http/fault/pacing.ts';
import type { FaultFilterSettings } from '../../../../src/extensions/filters.http/fault/settings.ts';
import type { RequestHead } from '../../../../src/wasm/http1.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const PIECE = 100;
const SETTINGS: FaultFilterSettings = {
  stats: { delays: 'a', aborts: 'b', slowed: 'c', overflow: 'd', active: 'e' },
  activeCount: 'f',
  fault: {
    delay: null,
    abort: null,
    rateLimit: { share: { key: '', default: { numerator: 100, denominator: 100 } }, bytesPerSecond: 16 * PIECE },
    upstreamCluster: '',
    headers: [],
    nodes: [],
    maxActive: { key: '', default: Number.POSITIVE_INFINITY },
    countsByClient: false,
    metadata: null,
  },
};

test('what comes because there is room waits for its turn, too', () => {
  const clock = new ManualClock();
  let held = 0;
  let further = 2 * PIECE;
  let isOver = false;
  const stat = () => ({ add: () => {}, total: 0 });
  const context = {
    clock,
    counter: stat,
    gauge: stat,
    sharedCount: () => ({ tryAdd: () => true, remove: () => {} }),
    random: () => 0,
    compileHeaders: () => () => true,
    headerNames: { spellings: () => [] },
    runtime: { derived: () => ({ value: undefined }), integer: () => undefined, texts: new Map() },
  };
  const callbacks = {
    routeSettings: [],
    routeCluster: '',
    addFlag: () => {},
    releaseResponse: (bytes: number) => {
      held -= Math.min(held, bytes);
      const left = held;
      if (left === 0 && further > 0) {
        const more = further;
        further = 0;
        comes(more);
      }
      return left;
    },
    continueEncoding: () => {
      assert.equal(held, 0, 'all of it has been let go piece by piece');
      isOver = true;
    },
  };
  const filter: HttpFilter = FAULT_FILTER.compile(
    SETTINGS,
    context as unknown as FilterContext,
  )(callbacks as unknown as FilterCallbacks);
  function comes(bytes: number): void {
    const status = filter.encodeData!({ bytes: Buffer.alloc(bytes), isEnd: false, addTrailers: () => assert.fail() });
    assert.equal(status, 'stop-and-pause');
    held += bytes;
  }
  const head = {
    header: () => undefined,
    headerByName: () => undefined,
    hasField: () => false,
  } as unknown as RequestHead;
  assert.equal(filter.decodeHeaders!(head, true), 'continue');
  comes(PIECE);
  clock.turn(0);
  assert.deepEqual([held, isOver], [2 * PIECE, false]);
  clock.turn(PIECE_MS);
  assert.deepEqual([held, isOver], [PIECE, false]);
  clock.turn(PIECE_MS);
  clock.turn(PIECE_MS);
  assert.deepEqual([held, isOver], [0, true]);
});
