// The stream of those who report: when it is opened, what goes over it, and that nothing is lost without being counted.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SYSTEM_RANDOM } from '../../../../src/base/random.ts';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import type {
  OutgoingStream,
  StreamAnswer,
  StreamReceiver,
  StreamRequest,
} from '../../../../src/data-plane/http/outgoing-stream.ts';
import { ReportStream } from '../../../../src/data-plane/tracing/report-stream.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const MAX_WAITING_BYTES = 1024 * 1024;
const FLUSH_MS = 300;
const CHECK_MS = 1000;
const MAX_WAIT_MS = 10_000;
const TIMEOUT_MS = 5000;
const ENOUGH = 3;

/** A stream as the service has it. */
class Wire implements OutgoingStream {
  readonly receiver: StreamReceiver;
  canSend = false;
  isStale = false;
  hasEnded = false;
  isCancelled = false;
  readonly messages: string[] = [];

  constructor(receiver: StreamReceiver) {
    this.receiver = receiver;
  }

  send(bytes: Buffer): void {
    assert.ok(this.canSend && !this.hasEnded, 'sent where nothing is taken');
    this.messages.push(bytes.toString('latin1'));
  }

  end(): void {
    assert.ok(!this.hasEnded, 'ended twice');
    this.hasEnded = true;
  }

  cancel(): void {
    this.isCancelled = true;
  }

  connect(): void {
    this.canSend = true;
    this.receiver.onStreamWritable();
  }
}

class Fixture {
  readonly clock = new ManualClock();
  /** Those that are not over. */
  readonly live: Wire[] = [];
  readonly opened: Wire[] = [];
  taken = 0;
  lost = 0;
  /** What becomes of a stream while it is begun. */
  atOnce: 'nothing' | 'connects' | 'fails' = 'nothing';
  readonly stream: ReportStream;
  #added = 0;

  constructor() {
    this.stream = new ReportStream(
      {
        clock: this.clock,
        random: SYSTEM_RANDOM,
        runtime: new RuntimeValues(),
        counter: () => ({ add() {} }),
        hasCluster: () => true,
        call: () => {},
        stream: (_request, receiver) => this.#open(receiver),
      },
      {
        request: {} as StreamRequest,
        flushIntervalMs: FLUSH_MS,
        bufferBytes: ENOUGH,
        timeoutMs: TIMEOUT_MS,
        message: (items, isFirst) =>
          ((isFirst ? '!' : '') + Buffer.concat(items).toString('latin1')) as unknown as Buffer,
        isWell: ({ status }) => status === 200,
        count: {
          taken: (items) => {
            this.taken += items;
          },
          lost: (items) => {
            this.lost += items;
          },
        },
      },
    );
  }

  get added(): number {
    return this.#added;
  }

  get messages(): readonly (readonly string[])[] {
    return this.opened.map(({ messages }) => messages);
  }

  /** Items are letters, in the order of the alphabet. */
  add(items = 1, bytes = 1): void {
    for (let item = 0; item < items; item += 1) {
      const letter = String.fromCharCode(97 + (this.#added % 26));
      this.#added += 1;
      this.stream.add(Buffer.alloc(bytes, letter));
    }
  }

  answer(wire: Wire | undefined, status = 200): void {
    if (wire === undefined || !this.#leave(wire)) return;
    wire.receiver.onStreamAnswer({ status } as StreamAnswer);
  }

  fail(wire: Wire | undefined): void {
    if (wire !== undefined && this.#leave(wire)) wire.receiver.onStreamFailure('connection termination');
  }

  #open(receiver: StreamReceiver): OutgoingStream | null {
    const wire = new Wire(receiver);
    this.opened.push(wire);
    if (this.atOnce === 'fails') {
      receiver.onStreamFailure('no healthy upstream');
      return null;
    }
    this.live.push(wire);
    if (this.atOnce === 'connects') wire.connect();
    return wire;
  }

  #leave(wire: Wire): boolean {
    const at = this.live.indexOf(wire);
    if (at >= 0) this.live.splice(at, 1);
    return at >= 0 && !wire.isCancelled;
  }
}

describe('a stream of reports', () => {
  test('is opened with the first message and stays, and its first message says who sends it', () => {
    const fixture = new Fixture();
    fixture.atOnce = 'connects';
    assert.equal(fixture.opened.length, 0);
    fixture.add(ENOUGH);
    fixture.add(1);
    fixture.clock.turn(FLUSH_MS);
    fixture.add(ENOUGH);
    assert.deepEqual(fixture.messages, [['!abc', 'd', 'efg']]);
  });

  test('holds what was sent to be taken when it has lived on', () => {
    const fixture = new Fixture();
    fixture.atOnce = 'connects';
    fixture.add(ENOUGH);
    fixture.clock.turn(CHECK_MS - 1);
    assert.equal(fixture.taken, 0);
    fixture.clock.turn(CHECK_MS + 1);
    assert.deepEqual([fixture.taken, fixture.lost], [ENOUGH, 0]);
  });

  test('keeps what waits until there is a connection', () => {
    const fixture = new Fixture();
    fixture.add(ENOUGH);
    fixture.add(1);
    assert.deepEqual(fixture.messages, [[]]);
    fixture.opened[0]!.connect();
    assert.deepEqual(fixture.messages, [['!abcd']]);
  });

  test('sends nothing over a connection that takes no more, and loses what there is no room for', () => {
    const fixture = new Fixture();
    fixture.atOnce = 'connects';
    fixture.add(ENOUGH);
    fixture.opened[0]!.canSend = false;
    fixture.add(ENOUGH);
    fixture.add(3, MAX_WAITING_BYTES / 2);
    assert.equal(fixture.lost, 2);
    fixture.opened[0]!.connect();
    assert.deepEqual(
      fixture.messages[0]!.map(({ length }) => length),
      [1 + ENOUGH, ENOUGH, MAX_WAITING_BYTES / 2],
    );
  });

  test('sends what has gathered in messages of 64 KiB, and stops when no more is taken', () => {
    const fixture = new Fixture();
    fixture.add(9, 20_000);
    const [wire] = fixture.opened;
    const send = wire!.send.bind(wire);
    wire!.send = (bytes) => {
      send(bytes);
      wire!.canSend = wire!.messages.length !== 2;
    };
    wire!.connect();
    assert.deepEqual(
      wire!.messages.map(({ length }) => length),
      [60_001, 60_000],
    );
    wire!.connect();
    assert.equal(wire!.messages[2]!.length, 60_000);
  });

  test('is followed by another when the service has ended it well, whose first message says again who sends it', () => {
    const fixture = new Fixture();
    fixture.atOnce = 'connects';
    fixture.add(ENOUGH);
    fixture.answer(fixture.opened[0]);
    assert.deepEqual([fixture.taken, fixture.lost], [ENOUGH, 0]);
    fixture.add(ENOUGH);
    assert.deepEqual(fixture.messages, [['!abc'], ['!def']]);
  });

  test('that has failed loses what was sent shortly before, and is followed by another after a wait', () => {
    const fixture = new Fixture();
    fixture.atOnce = 'connects';
    fixture.add(ENOUGH);
    fixture.clock.turn(2 * CHECK_MS);
    fixture.add(ENOUGH);
    fixture.fail(fixture.opened[0]);
    assert.deepEqual([fixture.taken, fixture.lost], [ENOUGH, ENOUGH]);
    fixture.add(ENOUGH);
    assert.equal(fixture.opened.length, 1);
    fixture.clock.turn(MAX_WAIT_MS);
    assert.deepEqual(fixture.messages, [['!abc', 'def'], ['!ghi']]);
  });

  test('is opened less and less often while it fails, and keeps what waits', () => {
    const fixture = new Fixture();
    fixture.atOnce = 'fails';
    fixture.add(ENOUGH);
    fixture.clock.turn(600_000);
    const { length } = fixture.opened;
    assert.ok(length >= 60 && length < 600, `${length} times in ten minutes`);
    assert.equal(fixture.lost, 0);
    fixture.atOnce = 'connects';
    fixture.clock.turn(MAX_WAIT_MS);
    assert.deepEqual(fixture.opened.at(-1)!.messages, ['!abc']);
    // One that has lived on proves that it works again.
    fixture.clock.turn(2 * CHECK_MS);
    fixture.fail(fixture.opened.at(-1));
    fixture.add(ENOUGH);
    fixture.clock.turn(500);
    assert.deepEqual(fixture.opened.at(-1)!.messages, ['!def']);
  });

  test('that takes nothing for long is given up', () => {
    const fixture = new Fixture();
    fixture.atOnce = 'connects';
    fixture.add(ENOUGH);
    const [wire] = fixture.opened;
    wire!.send = () => {
      wire!.canSend = false;
    };
    fixture.add(ENOUGH);
    fixture.clock.turn(TIMEOUT_MS - CHECK_MS);
    assert.equal(wire!.isCancelled, false);
    fixture.clock.turn(2 * CHECK_MS);
    assert.equal(wire!.isCancelled, true);
    fixture.add(ENOUGH);
    fixture.clock.turn(MAX_WAIT_MS);
    assert.deepEqual(fixture.opened[1]!.messages, ['!ghi']);
    fixture.clock.turn(3 * TIMEOUT_MS);
    assert.equal(fixture.opened[1]!.isCancelled, false, 'one that nothing is told to may stay');
  });

  test('that gets no connection for long is given up', () => {
    const fixture = new Fixture();
    fixture.add(ENOUGH);
    fixture.clock.turn(TIMEOUT_MS + CHECK_MS);
    assert.equal(fixture.opened[0]!.isCancelled, true);
    assert.equal(fixture.lost, 0);
  });

  test('is ended when its host has left, sooner or later', () => {
    const fixture = new Fixture();
    fixture.atOnce = 'connects';
    fixture.add(ENOUGH);
    fixture.opened[0]!.isStale = true;
    fixture.add(ENOUGH);
    assert.deepEqual([fixture.opened[0]!.hasEnded, fixture.messages], [true, [['!abc'], ['!def']]]);
    fixture.opened[1]!.isStale = true;
    fixture.clock.turn(CHECK_MS);
    assert.equal(fixture.opened[1]!.hasEnded, true);
    fixture.fail(fixture.opened[0]);
    fixture.add(ENOUGH);
    assert.equal(fixture.messages.length, 3, 'one that was left does not hold up its successors');
  });

  test('that waits for a connection to a host that has left gives way to another', () => {
    const fixture = new Fixture();
    fixture.add(ENOUGH);
    fixture.opened[0]!.isStale = true;
    fixture.atOnce = 'connects';
    fixture.clock.turn(CHECK_MS);
    assert.deepEqual(fixture.messages, [[], ['!abc']]);
  });

  test('is ended behind what waits when it is closed, and waited for', async () => {
    const fixture = new Fixture();
    fixture.atOnce = 'connects';
    fixture.add(ENOUGH);
    fixture.add(1);
    const closed = fixture.stream.close();
    assert.deepEqual([fixture.messages, fixture.opened[0]!.hasEnded], [[['!abc', 'd']], true]);
    fixture.answer(fixture.opened[0]);
    await closed;
    assert.deepEqual([fixture.taken, fixture.lost, fixture.clock.timerCount], [4, 0, 0]);
  });

  test('sends what waits and ends when it gets its connection as it is closed', async () => {
    const fixture = new Fixture();
    fixture.add(ENOUGH);
    const closed = fixture.stream.close();
    fixture.opened[0]!.connect();
    assert.deepEqual([fixture.messages, fixture.opened[0]!.hasEnded], [[['!abc']], true]);
    fixture.answer(fixture.opened[0]);
    await closed;
  });

  test('is not waited for without end when it is closed', async () => {
    const fixture = new Fixture();
    fixture.add(ENOUGH);
    const closed = fixture.stream.close();
    fixture.clock.turn(TIMEOUT_MS);
    await closed;
    assert.deepEqual([fixture.lost, fixture.clock.timerCount], [ENOUGH, 0]);
  });

  test('loses nothing, whatever happens, tells nothing twice, and is always waited for by somebody', async () => {
    const kinds = ['connect', 'block', 'answer', 'refuse', 'fail', 'stale'] as const;
    const step = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), items: fc.nat(4), bytes: fc.constantFrom(1, 200_000) }),
      fc.record({ kind: fc.constantFrom(...kinds), which: fc.nat(3) }),
      fc.record({ kind: fc.constant('turn' as const), ms: fc.nat(2 * CHECK_MS) }),
      fc.record({ kind: fc.constant('manners' as const), atOnce: fc.constantFrom('nothing', 'connects', 'fails') }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const fixture = new Fixture();
        for (const each of steps) {
          if (each.kind === 'add') fixture.add(each.items, each.bytes);
          else if (each.kind === 'turn') fixture.clock.turn(each.ms);
          else if (each.kind === 'manners') fixture.atOnce = each.atOnce;
          else {
            const wire = fixture.live[each.which];
            if (wire === undefined || wire.isCancelled) continue;
            if (each.kind === 'connect') wire.connect();
            else if (each.kind === 'block') wire.canSend = false;
            else if (each.kind === 'stale') wire.isStale = true;
            else if (each.kind === 'answer') fixture.answer(wire);
            else if (each.kind === 'refuse') fixture.answer(wire, 500);
            else fixture.fail(wire);
          }
          const { added, taken, lost } = fixture;
          assert.ok(taken + lost <= added);
          assert.ok(taken + lost === added || fixture.clock.timerCount > 0, 'nobody waits');
        }
        const closed = fixture.stream.close();
        fixture.clock.turn(2 * TIMEOUT_MS);
        await closed;
        const { added, taken, lost } = fixture;
        assert.equal(taken + lost, added);
        assert.equal(fixture.clock.timerCount, 0);
        for (const messages of fixture.messages) {
          for (const [at, message] of messages.entries()) assert.equal(message.startsWith('!'), at === 0);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
