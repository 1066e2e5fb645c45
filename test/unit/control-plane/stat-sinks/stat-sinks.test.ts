import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FaultBoundary } from '../../../../src/base/fault-boundary.ts';
import type { EventStream, StatSinkContext } from '../../../../src/control-plane/stat-sinks/stat-sink-kind.ts';
import { StatSinks, type StatSinksOptions } from '../../../../src/control-plane/stat-sinks/stat-sinks.ts';
import type { Loggers } from '../../../../src/log/index.ts';
import type { FlushTimes, StatSink } from '../../../../src/stats/index.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { KeepingSink } from '../../../support/stat-sinks.ts';
import { statsFixture } from '../../../support/stats.ts';

class TimedSink extends KeepingSink {
  readonly times: FlushTimes[] = [];

  override begin(times?: FlushTimes): void {
    this.times.push(times!);
  }
}

interface Fixture {
  readonly sinks: StatSinks;
  readonly clock: ManualClock;
  readonly faults: string[];
  readonly contexts: StatSinkContext[];
}

function fixture(made: Readonly<Record<string, StatSink | EventStream>>): Fixture {
  const clock = new ManualClock();
  const faults: string[] = [];
  const contexts: StatSinkContext[] = [];
  const options: StatSinksOptions = {
    settings: Object.keys(made).map((name) => ({ name, settings: {} })),
    kinds: new Map(
      Object.entries(made).map(([name, sink]) => [
        name,
        (_: object, context: StatSinkContext) => {
          contexts.push(context);
          return sink as StatSink;
        },
      ]),
    ),
    stats: statsFixture().store,
    clock,
    loggers: { get: () => ({}) } as unknown as Loggers,
    cluster: () => undefined,
    clusters: () => [],
    node: { id: '', cluster: '', locality: { region: '', zone: '', subZone: '' }, metadata: {} },
    flushIntervalMs: 5000,
    faults: new FaultBoundary((where, error) => faults.push(`${where}: ${String(error)}`)),
  };
  return { sinks: new StatSinks(options), clock, faults, contexts };
}

interface Closing extends Fixture {
  readonly events: string[];
  /** Of the sink that closes when it is told. */
  readonly slow: PromiseWithResolvers<void>;
}

/** A sink that closes at once, and another. */
function closing(): Closing {
  const events: string[] = [];
  const slow = Promise.withResolvers<void>();
  const sinkOf = (name: string, closed: Promise<void>): StatSink => {
    const sink = new KeepingSink();
    sink.close = () => {
      events.push(name);
      return closed;
    };
    return sink;
  };
  const made = { 'stat_sinks.one': sinkOf('one', Promise.resolve()), 'stat_sinks.slow': sinkOf('slow', slow.promise) };
  return { ...fixture(made), events, slow };
}

/** Of the event loop: promises and immediates have had theirs. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
}

describe('the sinks of a server', () => {
  it('are told since when a flush counts, and what the flush before was', async () => {
    const sink = new TimedSink();
    const { sinks, clock } = fixture({ 'stat_sinks.timed': sink });
    const startMs = clock.wallMs();
    clock.turn(5000);
    await sinks.flush();
    clock.turn(4000);
    await sinks.flush();
    assert.deepEqual(sink.times, [
      { startMs, lastMs: startMs, nowMs: startMs + 5000 },
      { startMs, lastMs: startMs + 5000, nowMs: startMs + 9000 },
    ]);
  });

  it('count under their own names', () => {
    const { sinks, contexts } = fixture({ 'stat_sinks.one': new KeepingSink() });
    contexts[0]!.counts.add('metrics_sent', 3);
    assert.equal(contexts[0]!.stats.value('stat_sinks.one.metrics_sent'), 3);
    assert.equal(sinks.isEmpty, false);
    assert.equal(fixture({}).sinks.isEmpty, true);
  });

  it('may be a stream for those who ask, which is told of each flush behind the others, and has no counts of its own', async () => {
    const events: string[] = [];
    const told = (event: string) => () => void events.push(event);
    const stream: EventStream = {
      flush: async () => told('stream')(),
      listen: () => undefined,
      close: told('closed'),
    };
    const sink = new KeepingSink();
    sink.end = told('sink');
    const { sinks, contexts, faults } = fixture({ 'stat_sinks.stream': stream, 'stat_sinks.sink': sink });
    assert.equal(sinks.eventStream, stream);
    const { stats } = contexts[0]!;
    assert.deepEqual(
      ['sink', 'stream'].map((kind) => stats.value(`stat_sinks.${kind}.metrics_sent`)),
      [0, undefined],
    );
    await sinks.flush();
    assert.deepEqual(events, ['sink', 'stream']);
    stream.flush = () => Promise.reject(new Error('broken'));
    await sinks.flush();
    assert.deepEqual(faults, ['the event stream: Error: broken']);
    await sinks.close(async () => told('last flush')());
    assert.deepEqual(events.slice(3), ['closed', 'last flush']);
  });

  it('that are a stream alone walk over no stats, and flush nothing at the end', async (t) => {
    const stream = { flush: async () => {}, listen: () => undefined, close: () => {} };
    const { sinks, contexts } = fixture({ 'stat_sinks.stream': stream });
    assert.equal(sinks.isEmpty, false);
    const walk = t.mock.method(contexts[0]!.stats, 'numericFamilies');
    await sinks.flush();
    assert.equal(walk.mock.callCount(), 0);
    await sinks.close(() => assert.fail('flushed'));
  });

  it('are named when they fail', async () => {
    const broken = new KeepingSink();
    broken.end = () => {
      throw new Error('broken');
    };
    const { sinks, faults } = fixture({ 'stat_sinks.sound': new KeepingSink(), 'stat_sinks.broken': broken });
    await sinks.flush();
    assert.deepEqual(faults, ['the stats sink stat_sinks.broken: Error: broken']);
  });

  it('are closed after a last flush, which one that never ends holds up for two seconds', async () => {
    const { sinks, clock, events } = closing();
    const closed = sinks.close(async () => void events.push('flush')).then(() => events.push('closed'));
    await turns();
    clock.turn(1999);
    await turns();
    assert.deepEqual(events, ['flush', 'one', 'slow']);
    clock.turn(1);
    await closed;
    assert.deepEqual(events, ['flush', 'one', 'slow', 'closed']);
  });

  it('have their own time however long the last flush has taken, which has fifteen seconds', async () => {
    const { sinks, clock, events, slow } = closing();
    const flush = Promise.withResolvers<void>();
    const closed = sinks.close(() => flush.promise).then(() => events.push('closed'));
    clock.turn(14_999);
    await turns();
    assert.deepEqual(events, []);
    flush.resolve();
    await turns();
    clock.turn(1999);
    await turns();
    assert.deepEqual(events, ['one', 'slow']);
    slow.resolve();
    await closed;

    const hung = closing();
    const ended = hung.sinks.close(() => new Promise(() => {}));
    hung.clock.turn(15_000);
    await turns();
    hung.slow.resolve();
    await ended;
    assert.deepEqual(hung.events, ['one', 'slow']);
  });

  it('get what has come while their thread was held up beyond the limit', async () => {
    const { sinks, clock, events, slow } = closing();
    const closed = sinks.close(async () => {}).then(() => events.push('closed'));
    await turns();
    // As the event loop has it behind a stall: timers come before what sockets have to say.
    clock.turn(60_000);
    setImmediate(() => {
      events.push('sent');
      slow.resolve();
    });
    await closed;
    assert.deepEqual(events, ['one', 'slow', 'sent', 'closed']);
  });

  it('that are none flush nothing at the end', async () => {
    await fixture({}).sinks.close(() => Promise.reject(new Error('flushed')));
  });
});
