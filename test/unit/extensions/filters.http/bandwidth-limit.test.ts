// The bandwidth limit of one body, by a clock that is turned by hand.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bucketState } from '../../../../src/base/token-bucket.ts';
import type { FilterCallbacks, FilterContext, HttpFilter } from '../../../../src/data-plane/index.ts';
import { BANDWIDTH_LIMIT_FILTER } from '../../../../src/extensions/filters.http/bandwidth_limit/filter.ts';
import type { BandwidthLimitSettings } from '../../../../src/extensions/filters.http/bandwidth_limit/settings.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const FILL_MS = 50;
const SLICE = 100;

function namesOf(prefix: string): BandwidthLimitSettings['request'] {
  const names = ['enabled', 'enforced', 'incomingTotal', 'allowedTotal', 'pending', 'incoming', 'allowed', 'duration'];
  return Object.fromEntries(names.map((name) => [name, `${prefix}.${name}`])) as never;
}

/** Responses of one worker, under one limit. */
class Limited {
  readonly clock = new ManualClock();
  readonly counts: Record<string, number> = {};
  readonly #make: (callbacks: FilterCallbacks) => HttpFilter;

  constructor() {
    const tokens = { maxTokens: 20 * SLICE, tokensPerFill: SLICE, fillIntervalMs: FILL_MS };
    const state = bucketState(SLICE, this.clock.monotonicMs());
    const settings: BandwidthLimitSettings = {
      request: namesOf('request'),
      response: namesOf('response'),
      limitsRequests: false,
      limitsResponses: true,
      bucket: { tokens: { ...tokens, state }, waiting: new SharedArrayBuffer(4) },
      enabled: { key: '', default: true },
      trailers: null,
    };
    const stat = (name: string) => {
      this.counts[name] = 0;
      const add = (n: number): void => {
        this.counts[name]! += n;
      };
      const set = (n: number): void => {
        this.counts[name] = n;
      };
      return { add, set, record: add };
    };
    const context = {
      clock: this.clock,
      sharedNowMs: () => this.clock.monotonicMs(),
      counter: stat,
      gauge: stat,
      time: stat,
      runtime: { derived: () => ({ value: true }) },
    };
    this.#make = BANDWIDTH_LIMIT_FILTER.compile(settings, context as unknown as FilterContext);
  }

  body(): HeldBody {
    return new HeldBody(this.#make);
  }
}

/** What a stream does with the body that the filter holds back. */
class HeldBody {
  readonly #filter: HttpFilter;
  held = 0;
  isHolding = false;
  /** What comes as soon as there is room. */
  further = 0;

  constructor(make: (callbacks: FilterCallbacks) => HttpFilter) {
    this.#filter = make({
      routeSettings: [],
      isLocalReply: false,
      onlyReadResponse: () => {},
      releaseResponse: (bytes: number) => {
        this.held -= Math.min(this.held, bytes);
        const { held, further } = this;
        if (bytes > 0 && further > 0) {
          this.further = 0;
          this.comes(further);
        }
        return held;
      },
      continueEncoding: () => {
        assert.equal(this.held, 0, 'all of it has been let pass');
        this.isHolding = false;
      },
    } as unknown as FilterCallbacks);
    this.#filter.encodeHeaders!(null as never, 200, false);
  }

  comes(bytes: number, isEnd = false): void {
    const status = this.#filter.encodeData!({ bytes: Buffer.alloc(bytes), isEnd, addTrailers: () => assert.fail() });
    this.isHolding = status !== 'continue';
    if (this.isHolding) this.held += bytes;
  }

  leaves(): void {
    this.#filter.onDestroy!();
  }
}

describe('the bandwidth limit of a body', () => {
  it('leaves alone what comes no faster than it may', () => {
    const limited = new Limited();
    const body = limited.body();
    for (let fill = 0; fill < 30; fill += 1) {
      body.comes(SLICE - 10);
      assert.ok(!body.isHolding, `piece ${fill}`);
      limited.clock.turn(FILL_MS);
    }
    assert.equal(limited.counts['response.enforced'], 0);
  });

  it('lets it have a slice with each fill, however much has been saved up', () => {
    const limited = new Limited();
    limited.clock.turn(15 * FILL_MS);
    const body = limited.body();
    body.comes(SLICE / 2);
    body.comes(3 * SLICE, true);
    limited.clock.turn(0);
    assert.equal(body.held, 2.5 * SLICE);
    limited.clock.turn(FILL_MS);
    assert.equal(body.held, 1.5 * SLICE);
    limited.clock.turn(2 * FILL_MS);
    assert.deepEqual([body.held, body.isHolding], [0, false]);
    assert.equal(limited.counts['response.duration'], 3 * FILL_MS);
  });

  it('makes up for a thread that was late', () => {
    const limited = new Limited();
    const body = limited.body();
    body.comes(10 * SLICE);
    limited.clock.turn(0);
    limited.clock.stall(3 * FILL_MS);
    limited.clock.turn(0);
    assert.equal(body.held, 6 * SLICE);
  });

  it('holds what comes as soon as there is room, too', () => {
    const limited = new Limited();
    const body = limited.body();
    body.comes(SLICE);
    body.comes(SLICE);
    body.further = SLICE;
    limited.clock.turn(FILL_MS);
    assert.deepEqual([body.held, body.isHolding], [SLICE, true]);
    limited.clock.turn(FILL_MS);
    assert.deepEqual([body.held, body.isHolding], [0, false]);
    assert.equal(limited.counts['response.allowedTotal'], 3 * SLICE);
  });

  it('keeps nobody waiting for a body whose stream is over', () => {
    const limited = new Limited();
    const body = limited.body();
    body.comes(5 * SLICE);
    assert.equal(limited.counts['response.pending'], 1);
    body.leaves();
    assert.equal(limited.counts['response.pending'], 0);
    assert.equal(limited.clock.timerCount, 0);
    const other = limited.body();
    other.comes(10);
    assert.ok(!other.isHolding);
  });
});
