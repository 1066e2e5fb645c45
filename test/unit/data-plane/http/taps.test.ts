import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Taps } from '../../../../src/data-plane/http/taps.ts';
import { type TapSession, type TapTrace, tapTraceCost, type WorkerToMain } from '../../../../src/snapshot/index.ts';

const MB = 1024 * 1024;

function session(id: number): TapSession {
  const settings = { match: { kind: 'any' }, maxRequestBytes: 1, maxResponseBytes: 1, isStreamed: false } as const;
  return { id, settings: { ...settings, configId: 'edge', enabled: null } };
}

function traceOf(size: number): TapTrace {
  const body = { bytes: new Uint8Array(size), isTruncated: false };
  return { kind: 'piece', exchangeId: 1, piece: { part: 'request_body_chunk', body } };
}

function startTaps() {
  const sent: WorkerToMain[] = [];
  const taps = new Taps((message) => sent.push(message));
  const first = session(1);
  taps.replace(first);
  return { taps, sent, first };
}

test('only the filter of the tap under way finds it', () => {
  const { taps, first } = startTaps();
  assert.equal(taps.find('edge'), first);
  assert.equal(taps.find('core'), null);
  taps.replace(null);
  assert.equal(taps.find('edge'), null);
});

test('what main has not taken has a bound; the rest is dropped, and main is told how much', () => {
  const { taps, sent, first } = startTaps();
  for (let at = 0; at < 6; at += 1) taps.send(first, traceOf(MB));
  assert.equal(sent.length, 3);
  taps.confirm(tapTraceCost(traceOf(MB)));
  assert.deepEqual(sent[3], { type: 'tap-dropped', sessionId: 1, count: 3 });
  taps.send(first, traceOf(MB));
  taps.send(first, traceOf(MB));
  assert.equal(sent.length, 5);
  for (let at = 0; at < 3; at += 1) taps.confirm(tapTraceCost(traceOf(MB)));
  taps.send(first, traceOf(1));
  assert.deepEqual(
    sent.map((message) => (message.type === 'tap-trace' ? message.dropped : message.type)),
    [0, 0, 0, 'tap-dropped', 0, 'tap-dropped', 0],
  );
});

test('one trace beyond the bound goes when nothing else is under way', () => {
  const { taps, sent, first } = startTaps();
  taps.send(first, traceOf(9 * MB));
  taps.send(first, traceOf(1));
  assert.equal(sent.length, 1);
});

test('another tap has nothing to do with what the one before left', () => {
  const { taps, sent, first } = startTaps();
  for (let at = 0; at < 6; at += 1) taps.send(first, traceOf(MB));
  const second = session(2);
  taps.replace(second);
  taps.send(first, traceOf(1));
  assert.equal(sent.length, 3);
  taps.confirm(3 * MB);
  assert.equal(sent.length, 3);
  taps.send(second, traceOf(1));
  assert.equal(sent.length, 4);
  assert.equal(taps.isUnderWay(first), false);
});

test('what is kept for exchanges has a bound over all of them', () => {
  const { taps } = startTaps();
  assert.equal(taps.keep(30 * MB), 30 * MB);
  assert.equal(taps.keep(30 * MB), 2 * MB);
  assert.equal(taps.keep(1), 0);
  taps.release(MB);
  assert.equal(taps.keep(30 * MB), MB);
});
