// The queue of those who report: its bounds, when it calls, and that nothing is lost without being counted.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SYSTEM_RANDOM } from '../../../../src/base/random.ts';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import type { CallAnswer, CallReceiver, CallRequest } from '../../../../src/data-plane/http/filter-call.ts';
import { type ReportEvent, ReportQueue } from '../../../../src/data-plane/tracing/report-queue.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const MAX_CALLS = 4;
const MAX_WAITING_BYTES = 1024 * 1024;
const FLUSH_MS = 1000;
const ANSWER = {} as CallAnswer;

interface Call {
  readonly request: CallRequest;
  readonly receiver: CallReceiver;
}

class Fixture {
  readonly clock = new ManualClock();
  /** Under way. */
  readonly calls: Call[] = [];
  readonly counts: Record<ReportEvent, number>;
  readonly queue: ReportQueue;
  hasCluster = true;
  /** Of each call: how many items the collector says it has taken. */
  taken: (items: number) => number = (items) => items;

  constructor({ enough = 3, maxItems }: { enough?: number; maxItems?: number } = {}) {
    const counts = { sent: 0, timed: 0, skipped: 0, taken: 0, refused: 0, failed: 0, dropped: 0 };
    this.counts = counts;
    const note = (event: ReportEvent) => (items: number) => {
      counts[event] += items;
    };
    this.queue = new ReportQueue(
      {
        clock: this.clock,
        random: SYSTEM_RANDOM,
        runtime: new RuntimeValues(),
        counter: () => ({ add() {} }),
        hasCluster: () => this.hasCluster,
        call: (request, receiver) => {
          this.calls.push({ request, receiver });
        },
        stream: () => null,
      },
      {
        cluster: 'collector',
        flushIntervalMs: () => FLUSH_MS,
        isEnough: (items) => items >= enough,
        request: (items) => ({ body: Buffer.concat(items) }) as CallRequest,
        takenOf: (_answer, items) => this.taken(items),
        ...(maxItems === undefined ? {} : { maxItems }),
        count: {
          sent: note('sent'),
          timed: note('timed'),
          skipped: note('skipped'),
          taken: note('taken'),
          refused: note('refused'),
          failed: note('failed'),
          dropped: note('dropped'),
        },
      },
    );
  }

  add(items = 1, bytes = 1): void {
    for (let item = 0; item < items; item += 1) this.queue.add(Buffer.alloc(bytes));
  }

  /** Of the first call under way. */
  answer(): void {
    this.calls.shift()?.receiver.onAnswer(ANSWER);
  }

  fail(): void {
    this.calls.shift()?.receiver.onCallFailure('timeout');
  }
}

describe('a report queue', () => {
  test('calls as soon as there is enough, and with what there is when time is over', () => {
    const fixture = new Fixture();
    fixture.add(2);
    assert.equal(fixture.calls.length, 0);
    fixture.add();
    assert.equal(fixture.calls[0]!.request.body.length, 3);
    assert.deepEqual([fixture.counts.timed, fixture.clock.timerCount], [0, 0]);
    fixture.add();
    fixture.clock.turn(FLUSH_MS - 1);
    assert.equal(fixture.calls.length, 1);
    fixture.clock.turn(1);
    assert.equal(fixture.calls[1]!.request.body.length, 1);
    assert.deepEqual([fixture.counts.timed, fixture.counts.sent], [1, 4]);
  });

  test('has four calls under way and no more, and goes on with the end of any', () => {
    const fixture = new Fixture({ enough: 1 });
    fixture.add(MAX_CALLS + 2);
    assert.equal(fixture.calls.length, MAX_CALLS);
    assert.equal(fixture.clock.timerCount, 0);
    fixture.fail();
    // Both that have waited.
    assert.equal(fixture.calls.length, MAX_CALLS);
    assert.equal(fixture.calls.at(-1)!.request.body.length, 2);
    assert.equal(fixture.counts.failed, 1);
  });

  test('waits for its time again when a call ends before there is enough', () => {
    const fixture = new Fixture({ enough: 2 });
    fixture.add(2 * MAX_CALLS + 1);
    fixture.clock.turn(FLUSH_MS);
    assert.equal(fixture.calls.length, MAX_CALLS);
    fixture.answer();
    assert.equal(fixture.calls.length, MAX_CALLS - 1);
    fixture.clock.turn(FLUSH_MS);
    assert.equal(fixture.calls.length, MAX_CALLS);
  });

  test('keeps a mebibyte, and drops what goes beyond', () => {
    const fixture = new Fixture({ enough: Number.POSITIVE_INFINITY });
    fixture.add(4, MAX_WAITING_BYTES / 4);
    assert.equal(fixture.counts.dropped, 0);
    fixture.add();
    assert.equal(fixture.counts.dropped, 1);
    fixture.queue.flush();
    fixture.add();
    assert.equal(fixture.counts.dropped, 1);
  });

  test('keeps as many items as it is told', () => {
    const fixture = new Fixture({ enough: Number.POSITIVE_INFINITY, maxItems: 2 });
    fixture.add(3);
    assert.equal(fixture.counts.dropped, 1);
  });

  test('counts what the collector has not taken', () => {
    const fixture = new Fixture();
    fixture.taken = (items) => items - 1;
    fixture.add(3);
    fixture.answer();
    assert.deepEqual([fixture.counts.taken, fixture.counts.dropped], [2, 1]);
    fixture.taken = () => 0;
    fixture.add(3);
    fixture.answer();
    assert.deepEqual([fixture.counts.taken, fixture.counts.refused], [2, 3]);
    // A collector that counts wrong takes no more than there was.
    fixture.taken = (items) => items + 5;
    fixture.add(3);
    fixture.answer();
    assert.deepEqual([fixture.counts.taken, fixture.counts.dropped], [5, 1]);
  });

  test('calls nobody where there is no such cluster', () => {
    const fixture = new Fixture();
    fixture.hasCluster = false;
    fixture.add(3);
    assert.deepEqual([fixture.calls.length, fixture.counts.skipped], [0, 3]);
  });

  test('sends what waits when it is closed, or counts it as dropped', async () => {
    const fixture = new Fixture({ enough: 2 });
    fixture.add();
    const closed = fixture.queue.close();
    assert.deepEqual([fixture.calls.length, fixture.clock.timerCount, fixture.counts.dropped], [1, 0, 0]);
    fixture.fail();
    await closed;
    const full = new Fixture({ enough: 1 });
    full.add(MAX_CALLS + 2);
    const settled = full.queue.close();
    assert.equal(full.counts.dropped, 2);
    for (let call = 0; call < MAX_CALLS; call += 1) full.answer();
    await settled;
    assert.deepEqual([full.calls.length, full.counts.taken], [0, MAX_CALLS]);
  });

  test('loses nothing, whatever happens, and is always waited for by somebody', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), items: fc.nat(5), bytes: fc.constantFrom(1, 200_000) }),
      fc.record({ kind: fc.constantFrom('answer' as const, 'fail' as const, 'flush' as const) }),
      fc.record({ kind: fc.constant('turn' as const), ms: fc.nat(2 * FLUSH_MS) }),
      fc.record({ kind: fc.constant('cluster' as const), has: fc.boolean() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 6 }), (steps, enough) => {
        const fixture = new Fixture({ enough, maxItems: 10 });
        let added = 0;
        for (const each of steps) {
          if (each.kind === 'add') {
            added += each.items;
            fixture.add(each.items, each.bytes);
          } else if (each.kind === 'answer') fixture.answer();
          else if (each.kind === 'fail') fixture.fail();
          else if (each.kind === 'flush') fixture.queue.flush();
          else if (each.kind === 'turn') fixture.clock.turn(each.ms);
          else if (each.kind === 'cluster') fixture.hasCluster = each.has;
          const { sent, skipped, dropped, taken, failed } = fixture.counts;
          const waiting = added - sent - skipped - dropped;
          assert.ok(waiting >= 0 && waiting <= 10, `${waiting} items wait`);
          assert.ok(fixture.calls.length <= MAX_CALLS);
          if (waiting > 0) assert.ok(fixture.clock.timerCount === 1 || fixture.calls.length === MAX_CALLS);
          if (waiting >= enough) assert.equal(fixture.calls.length, MAX_CALLS);
          assert.ok(taken + failed <= sent);
        }
        while (fixture.calls.length > 0) fixture.answer();
        void fixture.queue.close();
        while (fixture.calls.length > 0) fixture.answer();
        const { taken, failed, skipped, dropped } = fixture.counts;
        assert.equal(taken + failed + skipped + dropped, added);
        assert.equal(fixture.clock.timerCount, 0);
      }),
    );
  });
});
