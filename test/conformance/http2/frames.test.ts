// What RFC 9113 demands of frames and streams, asked of a session. Each input also comes byte by byte.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ErrorCode, FrameFlag, FrameType, PREFACE } from '../../../src/data-plane/http/codec/http2/frames.ts';
import { plainBlock } from '../../support/http2-heads.ts';
import {
  blockFrames,
  data,
  frame,
  GET,
  headers,
  POST,
  SETTINGS,
  TestSession,
  word,
} from '../../support/http2-session.ts';
import { ReferenceDecoder } from '../../support/reference/hpack.ts';
import { FRAME_CASES, type Outcome, STREAMWISE } from './frame-cases.ts';

const { ACK, END_STREAM } = FrameFlag;
const open = headers(1, POST, 0);
const done = headers(1);
const CONNECT = [
  [':method', 'CONNECT'],
  [':authority', 'a.example:443'],
] as const;

function outcomeOf(test: TestSession): Outcome & { resets: Record<number, number> } {
  const resets: Record<number, number> = {};
  const answers: Record<number, string> = {};
  const decoder = new ReferenceDecoder();
  for (const { type, streamId, payload } of test.take()) {
    if (type === FrameType.RST_STREAM) resets[streamId] = payload.readUInt32BE();
    if (type === FrameType.HEADERS) answers[streamId] = decoder.decode(payload)[0]![1];
    if (type === FrameType.GOAWAY) assert.equal(payload.readUInt32BE(4), test.fault?.code);
  }
  const { fault, events, stats } = test;
  return { ...(fault === null ? {} : { fault: fault.reason, code: fault.code }), resets, answers, events, stats };
}

describe('frames and streams of a client', () => {
  for (const [what, frames, expected, options = {}] of FRAME_CASES) {
    it(what, () => {
      const test = TestSession.server(options);
      test.consumes = expected.keeps !== true;
      const whole = outcomeOf(test.feed(...frames));
      assert.equal(whole.fault, expected.fault);
      if (expected.code !== undefined) assert.equal(whole.code, expected.code);
      if (expected.fault === undefined) assert.deepEqual(whole.resets, expected.resets ?? {});
      if (expected.fault === undefined) assert.deepEqual(whole.answers, expected.answers ?? {});
      if (expected.events !== undefined) assert.deepEqual(whole.events, expected.events);
      if (expected.stats !== undefined) assert.deepEqual(whole.stats, expected.stats);

      const bytes = Buffer.concat(frames);
      if (bytes.length > 20_000) return;
      const slow = TestSession.server(options);
      slow.consumes = test.consumes;
      for (const byte of bytes) slow.feed(Buffer.from([byte]));
      const cut = outcomeOf(slow);
      assert.equal(cut.fault, whole.fault);
      assert.deepEqual(cut.resets, whole.resets);
      assert.deepEqual(cut.stats, whole.stats);
    });
  }

  it('what is no preface, and a first frame that is no SETTINGS', () => {
    const other = new TestSession(true).feed(Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'));
    assert.equal(other.fault?.reason, 'http2_preface_invalid');
    const late = new TestSession(true).feed(PREFACE, done);
    assert.equal(late.fault?.reason, 'http2_settings_missing');
    const ack = new TestSession(true).feed(PREFACE, frame(FrameType.SETTINGS, ACK, 0));
    assert.equal(ack.fault?.reason, 'http2_settings_missing');
  });

  it('a server that wants to be pushed to', () => {
    const push = (value: number): Buffer => frame(FrameType.SETTINGS, 0, 0, [0, 2, 0, 0, 0, value]);
    const { fault } = new TestSession(false).feed(push(1));
    assert.deepEqual([fault?.reason, fault?.code], ['http2_settings_invalid', 1]);
    assert.equal(new TestSession(false).feed(push(0)).fault, null);
    assert.equal(TestSession.server().feed(push(1)).fault, null);
  });

  it('a session that has had its fault does nothing more', () => {
    const test = TestSession.server().feed(headers(2));
    test.take();
    test.feed(headers(1), frame(FrameType.PING, 0, 0, Buffer.alloc(8)));
    assert.deepEqual(test.take(), []);
    assert.deepEqual(test.events, []);
  });

  it('frames for a stream that was reset from here are let pass, and the table stays in step', () => {
    const test = TestSession.server({ ...STREAMWISE, maxConcurrentStreams: 1 }).feed(open, headers(3, POST, 0));
    test.feed(data(3, 'late'), headers(3, [['late', 'trailer']]), data(1, 'x', END_STREAM));
    assert.equal(test.fault, null);
    assert.deepEqual(test.events, ['1 head POST /', '1 data x end']);
  });
});

/** A session with a stream that a CONNECT with `status` for its answer has been exchanged on. */
const TUNNELS: Readonly<Record<string, (status: number) => TestSession>> = {
  'of a client': (status) => {
    const test = TestSession.server({ maxConcurrentStreams: 9 });
    test.answer = (stream) => {
      test.session.respondLines(stream, status, '', false);
      stream.isTunnel = status < 300;
    };
    test.feed(headers(1, CONNECT, 0));
    return test;
  },
  'of a server': (status) => {
    const test = new TestSession(false).feed(SETTINGS);
    test.request('CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n', false);
    return test.feed(headers(1, [[':status', `${status}`]], 0));
  },
};

for (const [whose, exchanged] of Object.entries(TUNNELS)) {
  describe(`frames ${whose} in a tunnel`, () => {
    /** Resets from here, and what the user of the stream has heard behind its head. */
    const heard = (status: number, ...frames: Buffer[]): unknown => {
      const test = exchanged(status);
      test.take();
      test.feed(...frames);
      const { fault, resets } = outcomeOf(test);
      return { fault, resets, events: test.events.slice(1) };
    };
    const refused = {
      fault: undefined,
      resets: { 1: ErrorCode.PROTOCOL_ERROR },
      events: ['1 data ab', 'idle', '1 reset 1 here headers_in_tunnel'],
    };

    it('content, credit and priority', () => {
      const priority = frame(FrameType.PRIORITY, 0, 1, Buffer.alloc(5));
      const credit = frame(FrameType.WINDOW_UPDATE, 0, 1, word(5));
      const events = ['1 data ab', '1 data c end'];
      const expected = { fault: undefined, resets: {}, events };
      assert.deepEqual(heard(200, data(1, 'ab'), priority, credit, data(1, 'c', END_STREAM)), expected);
    });

    for (const [what, trailers] of [
      ['trailers', headers(1, [['x', 'y']])],
      ['trailers that do not end it', headers(1, [['x', 'y']], 0)],
      ['trailers without a field', headers(1, [])],
      ['a second head', headers(1, [[':status', '200']], 0)],
    ] as const) {
      it(what, () => assert.deepEqual(heard(200, data(1, 'ab'), trailers), refused));
    }

    it('trailers in many frames, of more fields than are read', () => {
      const many = Array.from({ length: 101 }, (_, index) => [`x-${index}`, ''] as const);
      assert.deepEqual(heard(200, data(1, 'ab'), ...blockFrames(1, plainBlock(many), [5, 50], END_STREAM)), refused);
    });

    it('trailers that are too large to be read at once', () => {
      const large = plainBlock(Array.from({ length: 5 }, () => ['x', 'y'.repeat(16_000)]));
      const { resets } = heard(200, ...blockFrames(1, large, [], END_STREAM)) as typeof refused;
      assert.deepEqual(resets, { 1: ErrorCode.ENHANCE_YOUR_CALM });
    });

    it('trailers behind an answer that opens none', () => {
      const { resets, events } = heard(403, data(1, 'ab'), headers(1, [['x', 'y']])) as typeof refused;
      assert.deepEqual(resets, {});
      assert.deepEqual(events.slice(0, 2), ['1 data ab', '1 trailers x: y']);
    });

    it('trailers whose table is in step with those of the streams beside it', () => {
      const test = exchanged(200);
      // Both fields go into the table: the second block names the newest of them.
      const indexed = [0x40, 1, 0x78, 1, 0x79];
      test.feed(frame(FrameType.HEADERS, FrameFlag.END_HEADERS | END_STREAM, 1, indexed));
      if (test.session.isServer) test.feed(frame(FrameType.HEADERS, 5, 3, [...plainBlock(GET), 0x80 | 62]));
      else {
        test.request('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
        test.feed(frame(FrameType.HEADERS, 5, 3, [...plainBlock([[':status', '200']]), 0x80 | 62]));
      }
      assert.equal(test.fault, null);
      assert.ok(test.events.some((event) => event.startsWith('3 head ')));
    });
  });
}
