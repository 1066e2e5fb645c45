// What RFC 9113 demands of frames and streams, asked of a session. Each input also comes byte by byte.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FrameFlag, FrameType, PREFACE } from '../../../src/data-plane/http/codec/http2/frames.ts';
import { data, frame, headers, POST, TestSession } from '../../support/http2-session.ts';
import { ReferenceDecoder } from '../../support/reference/hpack.ts';
import { FRAME_CASES, type Outcome, STREAMWISE } from './frame-cases.ts';

const { ACK, END_STREAM } = FrameFlag;
const open = headers(1, POST, 0);
const done = headers(1);

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
