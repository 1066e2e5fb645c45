import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SYSTEM_RANDOM } from '../../../../src/base/random.ts';
import { Taps } from '../../../../src/data-plane/http/taps.ts';
import { type TapSession, type TapTrace, tapTraceCost, type WorkerToMain } from '../../../../src/snapshot/index.ts';

const MB = 1024 * 1024;

function session(id: number): TapSession {
  const settings = { match: { kind: 'any' }, maxRequestBytes: 1, maxResponseBytes: 1, isStreamed: false } as const;
  return { id, settings: { ...settings, configId: 'edge', enabled: null }, files: null };
}

function traceOf(size: number): TapTrace {
  const body = { bytes: new Uint8Array(size), isTruncated: false };
  return { kind: 'piece', exchangeId: 1, piece: { part: 'request_body_chunk', body } };
}

function startTaps() {
  const sent: WorkerToMain[] = [];
  const taps = new Taps((message) => sent.push(message), SYSTEM_RANDOM);
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
  for (let at = 0; at < 6; at += 1) taps.send(first, traceOf(MB), null);
  assert.equal(sent.length, 3);
  taps.confirm(tapTraceCost(traceOf(MB)));
  assert.deepEqual(sent[3], { type: 'tap-dropped', from: 1, count: 3 });
  taps.send(first, traceOf(MB), null);
  taps.send(first, traceOf(MB), null);
  assert.equal(sent.length, 5);
  for (let at = 0; at < 3; at += 1) taps.confirm(tapTraceCost(traceOf(MB)));
  taps.send(first, traceOf(1), null);
  assert.deepEqual(
    sent.map((message) => (message.type === 'tap-trace' ? message.dropped : message.type)),
    [0, 0, 0, 'tap-dropped', 0, 'tap-dropped', 0],
  );
});

test('what goes to files needs no tap under way, shares the bound, and its losses are told of apart', () => {
  const { taps, sent } = startTaps();
  taps.replace(null);
  const own: TapSession = { ...session(0), files: { pathPrefix: '/tmp/x', format: 'binary-delimited' } };
  assert.equal(taps.isUnderWay(own), true);
  const [first, second] = [taps.nextFile(own.files!), taps.nextFile(own.files!)];
  assert.notEqual(first.exchangeId, second.exchangeId);
  assert.ok(Number.isSafeInteger(first.exchangeId));
  for (let at = 0; at < 6; at += 1) taps.send(own, traceOf(MB), first);
  assert.deepEqual(
    sent.map((message) => message.type === 'tap-trace' && [message.to, message.dropped]),
    [
      [first, 0],
      [first, 0],
      [first, 0],
    ],
  );
  taps.confirm(tapTraceCost(traceOf(MB)));
  assert.deepEqual(sent[3], { type: 'tap-dropped', from: 'files', count: 3 });
});

test('the names of files of two workers are others', () => {
  const files = { pathPrefix: '/tmp/x', format: 'binary-delimited' } as const;
  const numbers = [1, 0xffff_ffff].map((drawn) => new Taps(() => {}, { u32: () => drawn }).nextFile(files).exchangeId);
  assert.notEqual(numbers[0], numbers[1]);
  assert.ok(numbers.every(Number.isSafeInteger));
});

test('one trace beyond the bound goes when nothing else is under way', () => {
  const { taps, sent, first } = startTaps();
  taps.send(first, traceOf(9 * MB), null);
  taps.send(first, traceOf(1), null);
  assert.equal(sent.length, 1);
});

test('another tap has nothing to do with what the one before left', () => {
  const { taps, sent, first } = startTaps();
  for (let at = 0; at < 6; at += 1) taps.send(first, traceOf(MB), null);
  const second = session(2);
  taps.replace(second);
  taps.send(first, traceOf(1), null);
  assert.equal(sent.length, 3);
  taps.confirm(3 * MB);
  assert.equal(sent.length, 3);
  taps.send(second, traceOf(1), null);
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
