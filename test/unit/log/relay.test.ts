import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LogRecord } from '../../../src/log/index.ts';
import { MAX_COST_UNDER_WAY, RelayReceiver, RelaySink } from '../../../src/log/relay.ts';
import type { MainToWorker, WorkerToMain } from '../../../src/snapshot/index.ts';

function record(message: string): LogRecord {
  return { logger: 'http', level: 'debug', message, stack: '', timeMs: 0, file: '', line: 0, functionName: '' };
}

/** A worker's half and main's, with a port between them that carries what a test lets through. */
class Relay {
  readonly underWay: WorkerToMain[] = [];
  isPortClosed = false;
  readonly sink = new RelaySink((message) => {
    if (this.isPortClosed) throw new Error('closed');
    this.underWay.push(structuredClone(message));
  });
  readonly #receiver = new RelayReceiver((message: MainToWorker) => {
    if (message.type === 'log-taken') this.sink.confirm(message.cost);
  });

  /** Main takes one message. */
  take(): WorkerToMain {
    const message = this.underWay.shift()!;
    if (message.type === 'log') this.#receiver.taken(message.record);
    return message;
  }

  logUntilFull(message = 'x'.repeat(300)): number {
    let written = 0;
    for (let sent = -1; sent !== this.underWay.length; written++) {
      sent = this.underWay.length;
      this.sink.write(record(message));
    }
    return written - 1;
  }
}

describe('the log records of a worker', () => {
  it('reach main in order, as many as there are, while main takes them', () => {
    const relay = new Relay();
    for (let number = 0; number < 50_000; number++) {
      relay.sink.write(record(String(number)));
      assert.deepEqual(relay.take(), { type: 'log', record: record(String(number)), dropped: 0 });
    }
  });

  it('are bounded while main takes none, whatever their size', () => {
    for (const length of [0, 300, 100_000]) {
      const relay = new Relay();
      const sent = relay.logUntilFull('x'.repeat(length));
      assert.ok(sent >= 10 && sent <= MAX_COST_UNDER_WAY / length + 1 && sent <= 5000, `${sent} of ${length}`);
    }
  });

  it('that were dropped are told of, when main takes some again', () => {
    const relay = new Relay();
    const sent = relay.logUntilFull();
    relay.sink.write(record('dropped as well'));
    for (let taken = 0; taken < sent; taken++) assert.equal(relay.take().type, 'log');
    assert.deepEqual(relay.take(), { type: 'log-dropped', count: 2 });
    relay.sink.write(record('next'));
    assert.deepEqual(relay.take(), { type: 'log', record: record('next'), dropped: 0 });
  });

  it('that cannot be sent are lost without a fault, and told of with the next one', () => {
    const relay = new Relay();
    relay.sink.write(record((() => {}) as unknown as string));
    relay.isPortClosed = true;
    relay.sink.write(record('nobody hears'));
    relay.isPortClosed = false;
    relay.sink.write(record('next'));
    assert.deepEqual(relay.take(), { type: 'log', record: record('next'), dropped: 2 });
  });
});
