import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SYSTEM_RANDOM } from '../../../../../src/base/random.ts';
import { Taps } from '../../../../../src/data-plane/http/taps.ts';
import { TapRecorder } from '../../../../../src/extensions/filters.http/tap/recorder.ts';
import {
  type TapSession,
  type TapSettings,
  type TapTrace,
  tapTraceCost,
  type WorkerToMain,
} from '../../../../../src/snapshot/index.ts';

const SETTINGS: TapSettings = {
  configId: 'edge',
  match: { kind: 'any' },
  maxRequestBytes: 4,
  maxResponseBytes: 6,
  isStreamed: false,
  enabled: null,
};

function tapOf(settings: Partial<TapSettings> = {}) {
  const sent: WorkerToMain[] = [];
  const taps = new Taps((message) => sent.push(message), SYSTEM_RANDOM);
  const session: TapSession = { id: 7, settings: { ...SETTINGS, ...settings }, files: null };
  taps.replace(session);
  const counted = { tapped: 0 };
  const record = () => new TapRecorder(taps, session, () => void counted.tapped++);
  const traces = (): TapTrace[] => sent.flatMap((message) => (message.type === 'tap-trace' ? [message.trace] : []));
  return { taps, session, counted, record, traces, sent };
}

function bytes(text: string): Buffer {
  return Buffer.from(text);
}

function text(body: Uint8Array): string {
  return Buffer.from(body).toString();
}

test('an exchange is told of at its end, with bodies up to their limits', () => {
  const { record, traces, counted } = tapOf();
  const recorder = record();
  recorder.headers('request', [[':path', '/']], 5);
  recorder.data('request', bytes('ab'));
  recorder.data('request', bytes('cdef'));
  recorder.trailers('request', [['x-t', '1']]);
  recorder.headers('response', [[':status', '200']], null);
  recorder.data('response', bytes('123456'));
  assert.deepEqual(traces(), []);
  recorder.end();
  assert.deepEqual(traces(), [
    {
      kind: 'exchange',
      request: {
        headers: [[':path', '/']],
        body: { bytes: Uint8Array.from(bytes('abcd')), isTruncated: true },
        trailers: [['x-t', '1']],
        receivedMs: 5,
      },
      response: {
        headers: [[':status', '200']],
        body: { bytes: Uint8Array.from(bytes('123456')), isTruncated: false },
        trailers: [],
        receivedMs: null,
      },
    },
  ]);
  assert.equal(counted.tapped, 1);
});

test('an exchange without response or body has none', () => {
  const { record, traces } = tapOf();
  const recorder = record();
  recorder.headers('request', [], null);
  recorder.end();
  assert.deepEqual(traces(), [
    { kind: 'exchange', request: { headers: [], body: null, trailers: [], receivedMs: null }, response: null },
  ]);
});

test('what is recorded is a copy, and no longer than what it says', () => {
  const { record, traces } = tapOf();
  const recorder = record();
  const buffer = bytes('abcd');
  recorder.headers('request', [], null);
  recorder.data('request', buffer);
  buffer.fill('x');
  recorder.end();
  const [trace] = traces();
  assert.ok(trace?.kind === 'exchange');
  assert.equal(text(trace.request.body!.bytes), 'abcd');
  assert.equal(trace.request.body!.bytes.buffer.byteLength, 4);
});

test('an exchange that does not match is neither told of nor counted', () => {
  const { record, traces, counted } = tapOf({ match: { kind: 'not', rule: { kind: 'any' } } });
  const recorder = record();
  recorder.headers('request', [], null);
  recorder.end();
  assert.deepEqual(traces(), []);
  assert.equal(counted.tapped, 0);
});

test('nothing is told after the end of the tap, though the exchange goes on', () => {
  const { taps, record, traces, counted } = tapOf();
  const recorder = record();
  recorder.headers('request', [], null);
  taps.replace(null);
  recorder.data('request', bytes('ab'));
  recorder.end();
  assert.deepEqual(traces(), []);
  assert.equal(counted.tapped, 0);
});

test('a streamed exchange is told of piece by piece once it is clear that it matches', () => {
  const status = { name: ':status', isInverted: false, treatMissingAsEmpty: false } as const;
  const { record, traces, counted } = tapOf({
    isStreamed: true,
    match: {
      kind: 'headers',
      of: 'response',
      headers: [{ ...status, test: { kind: 'exact', value: '200', ignoresCase: false } }],
    },
  });
  const recorder = record();
  recorder.headers('request', [['a', '1']], null);
  recorder.data('request', bytes('abcdef'));
  recorder.trailers('request', [['t', '1']]);
  assert.deepEqual(traces(), []);
  recorder.headers('response', [[':status', '200']], null);
  recorder.data('response', bytes('1234567'));
  recorder.trailers('response', [['t', '2']]);
  recorder.end();
  const pieces = traces().map((trace) => {
    assert.ok(trace.kind === 'piece');
    const { piece } = trace;
    return [
      trace.exchangeId,
      piece.part,
      'fields' in piece ? piece.fields : `${text(piece.body.bytes)} ${piece.body.isTruncated}`,
    ];
  });
  assert.deepEqual(pieces, [
    [1, 'request_headers', [['a', '1']]],
    [1, 'request_body_chunk', 'abcd true'],
    [1, 'request_trailers', [['t', '1']]],
    [1, 'response_headers', [[':status', '200']]],
    [1, 'response_body_chunk', '123456 true'],
    [1, 'response_trailers', [['t', '2']]],
  ]);
  assert.equal(counted.tapped, 1);
});

test('a streamed exchange that matches only by what did not come is told of at its end', () => {
  const { record, traces } = tapOf({
    isStreamed: true,
    match: { kind: 'not', rule: { kind: 'trailers', of: 'response', headers: [] } },
  });
  const recorder = record();
  recorder.headers('request', [], null);
  assert.equal(traces().length, 0);
  recorder.end();
  assert.equal(traces().length, 1);
});

test('bodies of all exchanges together have a bound, and give their part back', () => {
  const limit = 20 * 1024 * 1024;
  const { taps, record, traces } = tapOf({ maxRequestBytes: limit });
  const body = Buffer.alloc(limit);
  const recorders = [record(), record()];
  for (const recorder of recorders) {
    recorder.headers('request', [], null);
    recorder.data('request', body);
  }
  for (const recorder of recorders) {
    recorder.end();
    taps.confirm(tapTraceCost(traces().at(-1)!));
  }
  const last = record();
  last.headers('request', [], null);
  last.data('request', body.subarray(0, 1000));
  last.end();
  const truncated = traces().map((trace) => trace.kind === 'exchange' && trace.request.body!.isTruncated);
  assert.deepEqual(truncated, [false, true, false]);
});
