// How much time handshakes get in a turn of the event loop, and that none is forgotten, begins twice or begins when it has left.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FaultBoundary } from '../../../../../src/base/fault-boundary.ts';
import {
  type EventLoop,
  HandshakePacing,
  type PacedHandshake,
} from '../../../../../src/data-plane/network/tls/handshake-pacing.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';

const LEAST_MS = 2;
const MOST_MS = 20;

/** A loop whose turns a test makes; between any two callbacks the ticks run. */
class Turns implements EventLoop {
  readonly #ticks: (() => void)[] = [];
  #immediates: (() => void)[] = [];
  readonly #requests = new Set<() => void>();
  readonly nextTick = (callback: () => void): void => void this.#ticks.push(callback);
  readonly nextTurn = (callback: () => void): void => void this.#immediates.push(callback);
  readonly atPoll = (callback: () => void) => (): void => void this.#requests.add(callback);

  get isIdle(): boolean {
    return this.#immediates.length === 0 && this.#ticks.length === 0 && this.#requests.size === 0;
  }

  /** One callback of the loop. */
  run(callback: () => void): void {
    try {
      callback();
    } finally {
      for (let tick = this.#ticks.shift(); tick !== undefined; tick = this.#ticks.shift()) tick();
    }
  }

  end(): void {
    const due = this.#immediates;
    this.#immediates = [];
    for (const callback of due) this.run(callback);
  }

  /** Takes in what has come, after an end. */
  poll(): void {
    const due = [...this.#requests];
    this.#requests.clear();
    for (const callback of due) this.run(callback);
  }

  next(): void {
    this.end();
    this.poll();
  }
}

class Fixture {
  readonly clock = new ManualClock();
  readonly loop = new Turns();
  readonly faults: unknown[] = [];
  readonly pacing = new HandshakePacing(
    this.clock,
    new FaultBoundary((_where, error) => void this.faults.push(error)),
    this.loop,
  );
  readonly begun: number[] = [];
  readonly asked: PacedHandshake[] = [];

  /** @param costMs of the work that is done in the tick behind its begin. @param fault thrown by its begin. */
  ask(costMs: number, fault?: Error, isOfUpstream = false): void {
    const id = this.asked.length;
    const handshake = {
      begin: () => {
        this.begun.push(id);
        if (fault !== undefined) throw fault;
        this.loop.nextTick(() => this.clock.stall(costMs));
      },
    };
    this.asked.push(handshake);
    this.loop.run(() => {
      const hasBegun = isOfUpstream ? this.pacing.ask(handshake, true) : this.pacing.ask(handshake);
      assert.equal(hasBegun, this.begun.includes(id));
    });
  }

  askMany(count: number, costMs: number, isOfUpstream = false): void {
    for (let index = 0; index < count; index++) this.ask(costMs, undefined, isOfUpstream);
  }
}

describe('handshakes', () => {
  it('begin at once where there are few', () => {
    const fixture = new Fixture();
    fixture.askMany(3, 0.25);
    assert.deepEqual(fixture.begun, [0, 1, 2]);
    assert.equal(fixture.pacing.waiting, 0);
  });

  it('asked for in one callback begin behind one another, each behind the work of the one before', () => {
    const fixture = new Fixture();
    const begun: string[] = [];
    fixture.loop.run(() => {
      for (const name of ['first', 'second']) {
        const begin = (): void => {
          begun.push(name);
          fixture.loop.nextTick(() => void begun.push(`${name} worked`));
        };
        assert.equal(fixture.pacing.ask({ begin }), name === 'first');
      }
    });
    assert.deepEqual(begun, ['first', 'first worked', 'second', 'second worked']);
  });

  it('that come together begin in order, in each turn as many as fit into its time', () => {
    const fixture = new Fixture();
    fixture.askMany(20, 0.25);
    assert.equal(fixture.begun.length, 8);
    fixture.loop.next();
    assert.equal(fixture.begun.length, 16);
    fixture.loop.next();
    assert.deepEqual(fixture.begun, [...fixture.asked.keys()]);
  });

  it('never begin at the end of a turn, and let nobody overtake them before the next', () => {
    const fixture = new Fixture();
    fixture.askMany(4, 1);
    fixture.loop.end();
    assert.deepEqual(fixture.begun, [0, 1]);
    fixture.ask(1);
    assert.deepEqual(fixture.begun, [0, 1]);
    fixture.loop.poll();
    assert.deepEqual(fixture.begun, [0, 1, 2, 3]);
    fixture.loop.next();
    assert.deepEqual(fixture.begun, [0, 1, 2, 3, 4]);
  });

  it('get as much time as all else has taken in the turn before, up to a limit', () => {
    const fixture = new Fixture();
    fixture.askMany(200, 1);
    assert.equal(fixture.begun.length, LEAST_MS);
    fixture.clock.stall(7);
    fixture.loop.next();
    assert.equal(fixture.begun.length, LEAST_MS + 7);
    fixture.clock.stall(1000);
    fixture.loop.next();
    assert.equal(fixture.begun.length, LEAST_MS + 7 + MOST_MS);
    fixture.loop.next();
    assert.equal(fixture.begun.length, LEAST_MS + 7 + MOST_MS + LEAST_MS);
  });

  it('of clients and with upstreams take turns where both wait, each in order', () => {
    for (const upstreamsFirst of [false, true]) {
      const fixture = new Fixture();
      fixture.askMany(5, 2, upstreamsFirst);
      fixture.askMany(2, 2, !upstreamsFirst);
      assert.deepEqual(fixture.begun, [0]);
      for (let turn = 0; turn < 6; turn++) fixture.loop.next();
      const [clients, upstreams] = upstreamsFirst
        ? [
            [5, 6],
            [1, 2],
          ]
        : [
            [1, 2],
            [5, 6],
          ];
      const others = [upstreams[0], clients[0], upstreams[1], clients[1]];
      assert.deepEqual(fixture.begun, [0, ...others, 3, 4]);
    }
  });

  it('with upstreams wait, and leave, as those of clients do', () => {
    const fixture = new Fixture();
    fixture.askMany(4, 2, true);
    assert.deepEqual([fixture.begun, fixture.pacing.waiting], [[0], 3]);
    fixture.pacing.leave(fixture.asked[2]!);
    fixture.pacing.leave(fixture.asked[2]!);
    for (let turn = 0; turn < 3; turn++) fixture.loop.next();
    assert.deepEqual([fixture.begun, fixture.pacing.waiting], [[0, 1, 3], 0]);
  });

  it('leave the loop alone when a turn has had none', () => {
    const fixture = new Fixture();
    fixture.ask(1);
    fixture.loop.next();
    assert.ok(!fixture.loop.isIdle);
    fixture.loop.next();
    assert.ok(fixture.loop.isIdle);
    // What has passed meanwhile is nobody's time.
    fixture.clock.stall(1000);
    fixture.askMany(10, 1);
    assert.equal(fixture.begun.length, 1 + LEAST_MS);
  });

  it('go on behind one that throws, wherever it begins', () => {
    const fixture = new Fixture();
    const fault = new Error('deliberate');
    assert.throws(() => fixture.ask(1, fault), fault);
    fixture.askMany(2, 1);
    fixture.ask(0, fault);
    fixture.ask(1);
    fixture.loop.next();
    assert.deepEqual(fixture.begun, [0, 1, 2, 3, 4]);
    assert.deepEqual(fixture.faults, [fault]);
  });

  it('all begin once, in order and within their time, unless they leave before', () => {
    type Step =
      | { readonly askMs: number; readonly isOfUpstream: boolean }
      | { readonly leave: number }
      | { readonly othersMs: number }
      | 'end'
      | 'poll';
    const step: fc.Arbitrary<Step> = fc.oneof(
      { weight: 4, arbitrary: fc.tuple(fc.nat({ max: 24 }), fc.boolean()).map(asked) },
      fc.nat().map((leave) => ({ leave })),
      fc.nat({ max: 30 }).map((othersMs) => ({ othersMs })),
      fc.constantFrom('end' as const, 'poll' as const),
    );
    function asked([quarters, isOfUpstream]: [number, boolean]): Step {
      return { askMs: quarters / 4, isOfUpstream };
    }
    const property = fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const fixture = new Fixture();
      const costs: number[] = [];
      const upstreams = new Set<number>();
      const left = new Set<number>();
      /** Of this turn. */
      let counted = 0;
      let othersMs = 0;
      let allowedMs = LEAST_MS;
      const check = (): void => {
        const spent = fixture.begun.slice(counted).map((id) => costs[id]!);
        const withoutLast = spent.slice(0, -1).reduce((sum, cost) => sum + cost, 0);
        // The last one may begin with little time left.
        if (spent.length > 1) assert.ok(withoutLast < allowedMs, `${withoutLast} of ${allowedMs} ms`);
      };
      const end = (): void => {
        counted = fixture.begun.length;
        allowedMs = Math.min(Math.max(othersMs, LEAST_MS), MOST_MS);
        othersMs = 0;
        fixture.loop.end();
        assert.equal(fixture.begun.length, counted);
        if (fixture.loop.isIdle) allowedMs = LEAST_MS;
      };
      for (const each of steps) {
        if (each === 'end') end();
        else if (each === 'poll') {
          fixture.loop.poll();
          check();
        } else if ('askMs' in each) {
          // Time counts from the first one on.
          if (fixture.loop.isIdle) othersMs = 0;
          if (each.isOfUpstream) upstreams.add(costs.length);
          costs.push(each.askMs);
          fixture.ask(each.askMs, undefined, each.isOfUpstream);
          check();
        } else if ('othersMs' in each) {
          fixture.clock.stall(each.othersMs);
          othersMs += each.othersMs;
        } else if (costs.length > 0) {
          const id = each.leave % costs.length;
          if (!fixture.begun.includes(id)) left.add(id);
          fixture.pacing.leave(fixture.asked[id]!);
        }
      }
      for (let turns = 0; fixture.pacing.waiting > 0; turns++) {
        assert.ok(turns < costs.length, 'each turn begins one at least');
        end();
        fixture.loop.poll();
        check();
      }
      for (const isOfUpstream of [false, true]) {
        const isWanted = (id: number): boolean => upstreams.has(id) === isOfUpstream;
        assert.deepEqual(
          fixture.begun.filter(isWanted),
          [...costs.keys()].filter((id) => isWanted(id) && !left.has(id)),
        );
      }
    });
    fc.assert(property, { numRuns: 1000 });
  });
});
