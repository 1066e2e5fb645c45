// Connections to hosts that speak Redis, over hosts that are made up: who gets which answer, and what becomes of who waits.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FilterHost, LinkReceiver } from '../../../../src/data-plane/index.ts';
import { RedisUpstreams } from '../../../../src/extensions/filters.network/redis_proxy/upstream-client.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

class Link {
  readonly receiver: LinkReceiver;
  readonly written: string[] = [];
  readonly outcomes: string[] = [];
  takes = true;
  isClosed = false;
  active = 0;

  constructor(receiver: LinkReceiver) {
    this.receiver = receiver;
  }

  write(bytes: Buffer): boolean {
    this.written.push(bytes.toString());
    return this.takes;
  }

  requestBegan(): void {
    this.active += 1;
  }

  requestEnded(outcome: string): void {
    this.active -= 1;
    this.outcomes.push(outcome);
  }

  close(): void {
    this.isClosed = true;
  }
}

class Fixture {
  readonly clock = new ManualClock();
  readonly links: Link[] = [];
  host: FilterHost | null = { label: '10.0.0.1:6379' };
  hasPlace = true;
  readonly told: string[] = [];
  readonly upstreams: RedisUpstreams;

  constructor(flushBytes = 0) {
    const settings = { opTimeoutMs: 100, usesHashTags: false, flushBytes, flushMs: 3 };
    this.upstreams = new RedisUpstreams(
      settings,
      {
        hostFor: () => this.host,
        connect: (_host, receiver) => {
          if (!this.hasPlace) return null;
          const link = new Link(receiver);
          this.links.push(link);
          return link;
        },
      },
      this.clock,
    );
  }

  /** @returns whether it has been taken. What becomes of it stands in `told`. */
  send(text: string): boolean {
    const receiver = {
      onAnswer: (message: Buffer) => void this.told.push(`${text} ${message.toString().trim()}`),
      onNoAnswer: () => void this.told.push(`${text} none`),
    };
    return this.upstreams.send('ring', Buffer.from('key'), Buffer.from(text), receiver);
  }

  answer(text: string, at = 0): void {
    this.links[at]!.receiver.onBytes(Buffer.from(text));
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('requests to a host', () => {
  it('go out together over one connection, and get their answers in order', async () => {
    const fixture = new Fixture();
    for (const text of ['a', 'b', 'c']) assert.ok(fixture.send(text));
    await turn();
    assert.equal(fixture.links.length, 1);
    assert.deepEqual(fixture.links[0]!.written, ['abc']);
    fixture.answer('+1\r\n+');
    fixture.answer('2\r\n+3\r\n');
    assert.deepEqual(fixture.told, ['a +1', 'b +2', 'c +3']);
    assert.deepEqual(fixture.links[0]!.outcomes, ['answered', 'answered', 'answered']);
    assert.equal(fixture.clock.timerCount, 0);
  });

  it('are collected until there are as many bytes, or the time is over', async () => {
    const fixture = new Fixture(3);
    fixture.send('a');
    await turn();
    assert.deepEqual(fixture.links[0]!.written, []);
    fixture.clock.turn(3);
    assert.deepEqual(fixture.links[0]!.written, ['a']);
    fixture.send('bb');
    fixture.send('c');
    assert.deepEqual(fixture.links[0]!.written, ['a', 'bbc']);
  });

  it('wait while the host takes none', async () => {
    const fixture = new Fixture();
    fixture.send('a');
    const [link] = fixture.links;
    link!.takes = false;
    await turn();
    fixture.send('b');
    await turn();
    assert.deepEqual(link!.written, ['a']);
    link!.takes = true;
    link!.receiver.onWritable();
    assert.deepEqual(link!.written, ['a', 'b']);
  });

  for (const [what, outcome, happens] of [
    ['the connection ends', 'failed', ({ links }: Fixture) => links[0]!.receiver.onClosed()],
    ['the oldest is late', 'timeout', ({ clock }: Fixture) => clock.turn(100)],
    ['the host answers nonsense', 'failed', (fixture: Fixture) => fixture.answer('hello\r\n')],
    ['the chain goes', 'failed', ({ upstreams }: Fixture) => upstreams.close()],
  ] as const) {
    it(`get no answer when ${what}, and the next has another connection`, async () => {
      const fixture = new Fixture();
      fixture.send('a');
      fixture.send('b');
      happens(fixture);
      assert.deepEqual(fixture.told, ['a none', 'b none']);
      assert.deepEqual(fixture.links[0]!.outcomes, [outcome, outcome]);
      assert.ok(fixture.links[0]!.isClosed);
      assert.equal(fixture.clock.timerCount, 0);
      await turn();
      assert.deepEqual(fixture.links[0]!.written, []);
      assert.ok(fixture.send('c'));
      assert.equal(fixture.links.length, 2);
    });
  }

  it('are late by their own time, not by that of those before', () => {
    const fixture = new Fixture();
    fixture.send('a');
    fixture.clock.turn(60);
    fixture.send('b');
    fixture.answer('+1\r\n');
    fixture.clock.turn(60);
    assert.deepEqual(fixture.told, ['a +1']);
    fixture.clock.turn(40);
    assert.deepEqual(fixture.told, ['a +1', 'b none']);
  });

  it('end with the connection when the host speaks unasked', () => {
    const fixture = new Fixture();
    fixture.send('a');
    fixture.answer('+1\r\n+2\r\n');
    assert.deepEqual(fixture.told, ['a +1']);
    assert.ok(fixture.links[0]!.isClosed);
  });

  it('go on when the host leaves, and its connection ends behind the last', () => {
    const fixture = new Fixture();
    fixture.send('a');
    fixture.links[0]!.receiver.onHostLeft();
    assert.ok(!fixture.links[0]!.isClosed);
    fixture.send('b');
    assert.equal(fixture.links.length, 2);
    fixture.answer('+1\r\n');
    assert.ok(fixture.links[0]!.isClosed);
    fixture.answer('+2\r\n', 1);
    assert.deepEqual(fixture.told, ['a +1', 'b +2']);
    fixture.links[1]!.receiver.onHostLeft();
    assert.ok(fixture.links[1]!.isClosed, 'one at rest ends at once');
  });

  it('are not taken without a host, or a place for a connection', () => {
    const fixture = new Fixture();
    fixture.hasPlace = false;
    assert.equal(fixture.send('a'), false);
    fixture.host = null;
    assert.equal(fixture.send('b'), false);
    assert.deepEqual(fixture.told, []);
  });
});
